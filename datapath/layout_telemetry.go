package datapath

const (
	telemetryEventHead = 16  // octets of struct telemetry_event before the packet
	telemetryCapture   = 512 // TELEMETRY_CAPTURE
)

type telemetrySettings struct {
	Node     uint32
	Port     uint16
	Reserved uint16
}

type telemetryClass struct {
	Threshold    uint32
	OneIn        uint32
	Instructions uint16
	Hops         uint8
	Slots        uint8
}

type telemetryPrefix struct {
	Bits    uint32
	Address [16]byte
}
