package datapath

import (
	"fmt"
	"slices"
)

// placed gives each value an entry of an array, of which those below most can be used and 0 stands
// for none: the one that it has, or one that no value had before. So what refers to entries can be
// switched from before to the result one by one.
func placed[V comparable](before map[V]uint32, values []V, most uint32,
	array interface{ Put(number, value any) error }) (map[V]uint32, error) {
	numbers := map[V]uint32{}
	used := make([]bool, most)
	used[0] = true
	for _, number := range before {
		used[number] = true
	}
	for _, value := range values {
		if _, ok := numbers[value]; ok {
			continue
		}
		number, ok := before[value]
		if !ok {
			free := slices.Index(used, false)
			if free < 0 {
				return nil, fmt.Errorf("%d entries beside the %d present ones: %d can be held",
					len(values), len(before), most-1)
			}
			number = uint32(free)
			used[number] = true
			if err := array.Put(number, value); err != nil {
				return nil, err
			}
		}
		numbers[value] = number
	}
	return numbers, nil
}
