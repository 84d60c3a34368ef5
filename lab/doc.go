// Package lab builds emulated networks: nodes in network namespaces, links
// between them, routes, and the processes that run on the nodes, all described
// by one YAML file in the shape of containerlab's.
//
//	name: pair
//	topology:
//	  nodes:
//	    client: {addresses: ["fd00::1"]}
//	    server:
//	      addresses: ["fd00::2"]
//	      processes:
//	        - {name: http, command: "python3 -m http.server", ready: "tcp://[fd00::2]:8000"}
//	  links:
//	    - endpoints: ["client:eth0", "server:eth0"]
//	      rate: 100mbit
//
// The way of a lab through this package:
//
//	file --Parse--> Spec --newFabric--> fabric --routesOf--> routes     pure: document, expand, validate, fabric, route
//	                 |                    |                    |
//	                 +-----Up, Run--------+--------------------+-----> kernel: network, port, table, process
//	                          |
//	                       lab.json <---- Open, Exec, Down, List
//
// Everything that Up makes is named in the lab's state file before it is made,
// so that Down and the next Up can remove it even after a crash. A lock on the
// state directory tells a crashed lab from one at work: the kernel drops it
// with the process that holds it.
package lab
