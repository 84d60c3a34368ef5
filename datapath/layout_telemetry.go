package datapath

const (
	telemetryEventHead = 72  // octets of struct telemetry_event before the packet
	telemetryCapture   = 512 // TELEMETRY_CAPTURE
)

type telemetrySettings struct {
	Node      uint32
	Port      uint16
	Namespace uint16
	Encoding  uint8
	Shift     uint8
	Plain     uint8
	Reserved  [5]uint8

	Infrastructure [infrastructureMax]prefix
}

type telemetryClass struct {
	Match        match
	Threshold    uint32
	OneIn        uint32
	Instructions uint16
	Hops         uint8
	Slots        uint8
	Listed       uint8
	Looks        uint8
	Reserved     [2]uint8
}

type telemetryList struct {
	First      uint32
	TAIOffsetS int32
	Ceilings   [2]uint32
	Classes    [2 * TelemetryClasses]telemetryClass
}

type telemetryPrefix struct {
	Bits    uint32
	Address [16]byte
}

type telemetryWatch struct {
	GapNS          uint64
	FlowIntervalNS uint64
	GapRTTs        uint32
	Queue          uint32
	QueueChange    uint32
	Reasons        uint32
	Limit          uint32
	Reserved       uint32
}

type telemetryFlowKey struct {
	Source          [16]byte
	Destination     [16]byte
	SourcePort      [2]byte
	DestinationPort [2]byte
	Protocol        uint8
	Version         uint8
	Reserved        [2]byte
}

type telemetryFlow struct {
	LastNS    uint64
	ReportNS  uint64
	OpeningNS uint64
	RTTNS     uint64
	Queue     uint32
	Path      uint32
	State     uint32
	Reserved  uint32
}
