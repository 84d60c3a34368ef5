package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// What destroys is not guessed from a word in which a letter is missing, wrong or doubled.
func TestNothingDestructiveIsGuessed(t *testing.T) {
	eachCommand(t, func(_, cmd *cobra.Command) {
		for _, name := range having(cmd, destructive) {
			for i := range name {
				for _, middle := range []string{"", "x", name[i:i+1] + name[i:i+1]} {
					word := name[:i] + middle + name[i+1:]
					if strings.HasPrefix(name, word) || synonyms[word] != nil {
						continue
					}
					for _, guess := range guesses(cmd, []string{word}) {
						if slices.Contains(destructive, guess[strings.LastIndex(guess, " ")+1:]) {
							t.Errorf("%s %s: did you mean %s?", cmd.CommandPath(), word, guess)
						}
					}
				}
			}
		}
	})
}

// What a synonym stands for is a command, and the synonym is of use somewhere.
func TestSynonymsAreCommands(t *testing.T) {
	of := map[string]bool{}
	eachCommand(t, func(_, cmd *cobra.Command) { of[cmd.Name()] = true })
	for word, commands := range synonyms {
		for _, command := range commands {
			if !of[command] {
				t.Errorf("%s may be %s, which no command is called", word, command)
			}
		}
	}
}
