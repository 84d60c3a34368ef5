package config

import (
	"fmt"
	"strconv"
	"strings"
)

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
		return StatusRange{}, invalid(fmt.Sprintf("%q are no HTTP status codes", s),
			"write one like 200, or a range like 200-399")
	}
	return StatusRange{first, last}, nil
}
