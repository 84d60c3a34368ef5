package telemetry

import "fmt"

// Reason says why octets are refused. It is an error that costs no memory, and a small number to
// count by.
type Reason uint8

// The reasons.
const (
	Truncated         Reason = iota + 1 // the octets end before what their lengths announce
	BadVersion                          // a version that this format does not have
	BadType                             // a type that does not belong here
	BadLength                           // a length that contradicts another field
	TooLong                             // what is to be written exceeds its length field
	NotWords                            // what is to be written is no multiple of 4 octets
	NotFound                            // the packet carries none
	lastReason        = NotFound
	unknownReasonText = "telemetry: reason %d"
)

var reasonTexts = [lastReason + 1]string{
	Truncated:  "telemetry: the octets end before what their lengths announce",
	BadVersion: "telemetry: the version is not one that this format has",
	BadType:    "telemetry: the type does not belong here",
	BadLength:  "telemetry: a length contradicts another field",
	TooLong:    "telemetry: the contents exceed what the length field can say",
	NotWords:   "telemetry: the contents are no multiple of 4 octets",
	NotFound:   "telemetry: the packet carries no such header",
}

// Error returns the reason in words.
func (r Reason) Error() string {
	if r == 0 || r > lastReason {
		return fmt.Sprintf(unknownReasonText, uint8(r))
	}
	return reasonTexts[r]
}
