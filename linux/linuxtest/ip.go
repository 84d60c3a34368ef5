package linuxtest

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// IP runs commands of ip(8), one a line, in the network namespace of the calling thread, up to the
// first that fails. Those with the same options (-6, -n NAMESPACE) that follow each other are one
// process.
func IP(commands string) error {
	var options []string
	var batch strings.Builder
	run := func() error {
		if batch.Len() == 0 {
			return nil
		}
		cmd := exec.Command("ip", append(slices.Clone(options), "-batch", "-")...)
		cmd.Stdin = strings.NewReader(batch.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s\n%s", strings.Join(options, " "), err, out, &batch)
		}
		batch.Reset()
		return nil
	}
	for line := range strings.Lines(commands) {
		own, words := optionsOf(strings.Fields(line))
		if len(words) == 0 {
			continue
		}
		if !slices.Equal(own, options) {
			if err := run(); err != nil {
				return err
			}
			options = own
		}
		fmt.Fprintln(&batch, strings.Join(words, " "))
	}
	return run()
}

// optionsOf cuts the options off the words of a command.
func optionsOf(words []string) (options, command []string) {
	count := 0
	for count < len(words) && words[count][0] == '-' {
		if words[count] == "-n" {
			count++ // its value
		}
		count++
	}
	count = min(count, len(words))
	return words[:count], words[count:]
}
