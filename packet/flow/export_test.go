package flow

// SipHash is the core with both parameters, for the vectors that are published for SipHash-2-4.
var SipHash = sipHash
