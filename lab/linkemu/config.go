package linkemu

import (
	"encoding/json"
	"fmt"
	"os"

	"sextant/lab/netem"
)

// Config says what a process of [Run] does.
type Config struct {
	Socket string `json:"socket"` // path of the Unix socket at which it is asked and told
	Links  []Link `json:"links"`
}

// Link is a pair of interfaces in the namespace of the process, and what happens between them.
type Link struct {
	Ends       [2]string        `json:"ends"`       // names for people, like "edge1:eth0"
	Interfaces [2]string        `json:"interfaces"` // frames go from each to the other
	MTU        int              `json:"mtu"`        // bytes
	Seed       uint64           `json:"seed"`
	Profiles   [2]netem.Profile `json:"profiles"` // of what comes from each end
}

// Write writes the file that Run reads.
func (c Config) Write(file string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the wire's configuration: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the wire's configuration: %w", err)
	}
	return nil
}

func readConfig(file string) (Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Config{}, fmt.Errorf("read the wire's configuration: %w", err)
	}
	var c Config
	if err := json.Unmarshal(text, &c); err != nil {
		return Config{}, fmt.Errorf("read the wire's configuration %s: %w; \"sextant lab up\" "+
			"writes it", file, err)
	}
	return c, nil
}
