package telemetry

// Field is a set of fields of a Sample.
type Field uint8

// The fields of a Sample that a source may lack.
const (
	FieldNode        Field = 1 << iota // Node
	FieldInterfaces                    // Ingress and Egress
	FieldQueue                         // QueueBytes
	FieldDelay                         // DelayNS
	FieldTime                          // TimeNS
	FieldUtilization                   // UtilizationPPM
)

// Sample is what one node said about one packet, whatever format carried it.
type Sample struct {
	Path       uint64 // as the caller calls the path or flow
	Node       uint64
	TimeNS     uint64 // nanoseconds of the node's own clock
	DelayNS    uint32 // nanoseconds that the packet was in the node
	QueueBytes uint32 // octets in the queue that the packet left through
	// UtilizationPPM is how much of the rate of the egress link was used, in parts per million.
	UtilizationPPM uint32
	Ingress        uint32 // number of the interface; all ones if unknown
	Egress         uint32
	Hop            uint8 // 0 is the first node that wrote
	QueueID        uint8
	Known          Field // the fields that the node filled
}
