// Package protection turns an intent, "send this traffic from R1 to R7 over two paths that share
// nothing", into segment lists, and decides which of them carry when links fail.
//
//	Intent --Network.Compute--> Plan --New--> State --Probed, Checked, Adopt--> State
//	                                            |
//	                                            +--Carrying, Policy--> what the head-end does now
//
// A plan is made of the disjoint paths of packages segment and segment/proof, with the reason why
// there are not more. A State is a value; its methods return the next one, and the same events in
// the same order give the same answers. Spares take over at once; the plan that a failure asks for
// is computed outside (State.Avoid says around what) and comes back by Adopt, make before break.
package protection
