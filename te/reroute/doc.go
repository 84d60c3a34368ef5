// Package reroute decides which path a flow takes next, from what telemetry says about queues:
// SMOOTHIE (Champagne and Donnet, "SMOOTHIE: efficient and flexible load-balancing in data
// center", 2023), an extension of it, and the schemes that it is compared with.
//
// [Weights] keeps a weight per link. [Paths] draws shortest paths at random, each as likely as any
// other, without listing them. A [Decider] holds both and the flows that were rerouted, and answers
// each [Report] with a [Decision], which says why, whether the flow moves or not.
//
// Times are durations since a moment that the caller chooses. Random numbers come from the seed
// alone, so that the same reports give the same decisions.
package reroute
