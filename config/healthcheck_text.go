package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func newCheck() *Check {
	return &Check{
		Interval: 2 * time.Second, Timeout: time.Second, Rise: 2, Fall: 3, JitterPermille: 100,
		Startup: StartUp, OnFail: FailDrain, PanicPermille: 500,
	}
}

func readCheck(v value, c *Check) {
	v.mapping(
		field{"kind", intoText(&c.Kind), `"kind: " and ` + alternatives(checkKinds)},
		field{"interval", into(&c.Interval, ParseWait), ""},
		field{"timeout", into(&c.Timeout, ParseWait), ""},
		field{"rise", intoNumber(&c.Rise), ""},
		field{"fall", intoNumber(&c.Fall), ""},
		field{"jitter", intoPermille(&c.JitterPermille), ""},
		field{"startup", intoText(&c.Startup), ""},
		field{"onFail", intoText(&c.OnFail), ""},
		field{"panic", intoPermille(&c.PanicPermille), ""},
		field{"function", into(&c.Function, parseLocalCSID), ""},
		field{"source", into(&c.Source, ParseAddress), ""},
		field{"port", into(&c.Port, parseCheckPort), ""},
		field{"path", intoText(&c.Path), ""},
		field{"host", intoText(&c.Host), ""},
		field{"status", into(&c.Status, parseStatusRange), ""},
		field{"body", intoText(&c.Body), ""},
		field{"insecure", into(&c.Insecure, parseBool), ""},
		field{"service", intoText(&c.Service), ""},
		field{"command", intoList(&c.Command, readText), ""},
		field{"passive", func(v value) { c.Passive = newPassive(); readPassive(v, c.Passive) }, ""},
	)
	if c.Kind.ofHTTP() && c.Path == "" {
		c.Path = "/"
	}
	if c.Kind.ofHTTP() && c.Status == (StatusRange{}) {
		c.Status = StatusRange{200, 399}
	}
}

func readText(v value) (text string) {
	intoText(&text)(v)
	return text
}

func parseBool(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, invalid(fmt.Sprintf("%q is neither true nor false", s), "write true or false")
}

func parseCheckPort(s string) (uint16, error) {
	port, err := ParsePort(s)
	if err == nil && port == AnyPort {
		return 0, invalid("a check needs one port", "write 1 to 65535")
	}
	return port, err
}

// parseStatusRange reads "200" or "200-399".
func parseStatusRange(s string) (StatusRange, error) {
	low, high, isRange := strings.Cut(s, "-")
	if !isRange {
		high = low
	}
	first, err1 := strconv.Atoi(low)
	last, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil || first < 100 || first > last || last > 599 {
		return StatusRange{}, invalid(fmt.Sprintf("%q are no HTTP status codes", s), "write one like 200, or a range like 200-399")
	}
	return StatusRange{first, last}, nil
}

// documentCheck is the shape of a service's check in the file.
type documentCheck struct {
	Kind     CheckKind    `yaml:"kind" json:"kind"`
	Interval string       `yaml:"interval" json:"interval"`
	Timeout  string       `yaml:"timeout" json:"timeout"`
	Rise     int          `yaml:"rise" json:"rise"`
	Fall     int          `yaml:"fall" json:"fall"`
	Jitter   float64      `yaml:"jitter" json:"jitter"`
	Startup  CheckStartup `yaml:"startup" json:"startup"`
	OnFail   CheckFailure `yaml:"onFail" json:"onFail"`
	Panic    float64      `yaml:"panic" json:"panic"`
	Function string       `yaml:"function,omitempty" json:"function,omitempty"`
	Source   string       `yaml:"source,omitempty" json:"source,omitempty"`
	Port     uint16       `yaml:"port,omitempty" json:"port,omitempty"`
	Path     string       `yaml:"path,omitempty" json:"path,omitempty"`
	Host     string       `yaml:"host,omitempty" json:"host,omitempty"`
	Status   string       `yaml:"status,omitempty" json:"status,omitempty"`
	Body     string       `yaml:"body,omitempty" json:"body,omitempty"`
	Insecure bool         `yaml:"insecure,omitempty" json:"insecure,omitempty"`
	Service  string       `yaml:"service,omitempty" json:"service,omitempty"`
	Command  []string     `yaml:"command,omitempty" json:"command,omitempty"`

	Passive *documentPassive `yaml:"passive,omitempty" json:"passive,omitempty"`
}

func checkDocument(c *Check) *documentCheck {
	if c == nil {
		return nil
	}
	d := &documentCheck{
		Kind: c.Kind, Interval: c.Interval.String(), Timeout: c.Timeout.String(), Rise: c.Rise, Fall: c.Fall,
		Jitter: float64(c.JitterPermille) / 1000, Startup: c.Startup, OnFail: c.OnFail,
		Panic:  float64(c.PanicPermille) / 1000,
		Source: addressText(c.Source), Port: c.Port, Path: c.Path, Host: c.Host, Body: c.Body, Insecure: c.Insecure,
		Service: c.Service, Command: c.Command, Passive: passiveDocument(c.Passive),
	}
	if c.Function != 0 {
		d.Function = c.Function.String()
	}
	if c.Kind.ofHTTP() {
		d.Status = c.Status.String()
	}
	return d
}
