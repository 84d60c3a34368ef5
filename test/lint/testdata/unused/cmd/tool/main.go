// Command tool uses the library.
package main

import (
	"fmt"

	"fixture/lib"
)

func main() { fmt.Println(lib.Used(), lib.Red) }
