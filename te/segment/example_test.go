package segment_test

import (
	"fmt"
	"log"

	"sextant/packet/srv6"
	"sextant/te/segment"
	"sextant/te/segment/sidlist"
	"sextant/te/topology/dataset"
)

// Two paths between two routers of a provider that no single link failure breaks together.
func Example() {
	network, err := dataset.Open("paper-table3/AS3967")
	if err != nil {
		log.Fatal(err)
	}
	engine, err := segment.New(network.All())
	if err != nil {
		log.Fatal(err)
	}
	answer, err := engine.Disjoint(segment.Query{From: 3, To: 40, Paths: 2})
	if err != nil {
		log.Fatal(err)
	}
	block, _ := srv6.ParseBlock("fcbb:bb00::/32")
	for _, path := range answer.Paths {
		list, err := sidlist.Plan{Graph: network, Block: block}.List(path)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(path.Latency, "ms:", list, list.Carriers)
	}
	// Output:
	// 18 ms: El+Segundo,+CA163, Austin,+TX137 (forced) [fcbb:bb00:2e:29::]
	// 19 ms: Austin,+TX137 (forced) [fcbb:bb00:29::]
}
