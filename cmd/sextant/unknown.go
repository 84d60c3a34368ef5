package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// unknownCommand is a command line whose command does not have a subcommand.
type unknownCommand struct {
	error
	of *cobra.Command
}

func (u unknownCommand) Unwrap() error { return u.error }

// chooseSubcommand answers a command line that ends before the verb, or has an unknown one.
func chooseSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		if !cmd.HasParent() {
			return cmd.Help()
		}
		return usageErrorf("say what to do: %s", strings.Join(subcommandNames(cmd), ", "))
	}
	return refuseUnknown(cmd, args)
}

// refuseUnknown names what may be meant by an argument of a command that takes subcommands alone.
// Others, and those without arguments, have nothing to be refused.
func refuseUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || !cmd.HasSubCommands() {
		return nil
	}
	if meant := guesses(cmd, args); len(meant) > 0 {
		return unknownCommand{usageErrorf("unknown command %q; did you mean %s?", args[0],
			strings.Join(meant, " or ")), cmd}
	}
	return unknownCommand{usageErrorf("unknown command %q; known: %s", args[0],
		strings.Join(subcommandNames(cmd), ", ")), cmd}
}

// settleHelp has help refuse what is not there, as a run does.
func (a *app) settleHelp(root *cobra.Command) {
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if a.unhelped = refuseUnknown(cmd, cmd.Flags().Args()); a.unhelped == nil {
			show(cmd, args)
		}
	})
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Args, help.Run = cobra.ArbitraryArgs, nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err != nil {
			return err
		}
		cmd.InitDefaultHelpFlag() // so that it is shown
		if err := refuseUnknown(cmd, rest); err != nil {
			return err
		}
		return cmd.Help()
	}
}

// synonyms are what a command may be called here, by what it is called elsewhere.
var synonyms = map[string][]string{
	"create": {"add"}, "new": {"add"},
	"delete": {"remove", "down"}, "remove": {"delete", "down"},
	"del": {"delete", "remove", "down"}, "rm": {"delete", "remove", "down"},
	"describe": {"show", "list"}, "get": {"show", "list"},
	"ls": {"list"}, "status": {"list"},
	"reload": {"apply"}, "validate": {"check"}, "verify": {"check"},
}

// destructive commands are not guessed because they look like a word.
var destructive = []string{"delete", "down", "remove", "unload"}

// guesses are the commands that may be meant by the arguments of one that has no such subcommand.
func guesses(cmd *cobra.Command, args []string) []string {
	word := args[0]
	words := append([]string{word}, synonyms[word]...)
	if !cmd.HasParent() {
		if turned := ofNouns(cmd, args, words); len(turned) > 0 {
			return turned
		}
	}
	if known := having(cmd, words); len(known) > 0 {
		return known
	}
	near, others := alike(cmd, word), ofOtherNouns(cmd, words)
	if !cmd.HasParent() {
		if len(others) > 0 {
			return others
		}
		return near
	}
	if top, _, _ := cmd.Root().Find(args[:1]); top.HasParent() && !top.HasSubCommands() &&
		top.IsAvailableCommand() {
		return []string{top.CommandPath()}
	}
	if len(near) == 0 && len(others) <= mostOthers {
		return others
	}
	return near
}

// having are those of the words that a command has as subcommands.
func having(cmd *cobra.Command, words []string) (known []string) {
	names := subcommandNames(cmd)
	for _, word := range words {
		if slices.Contains(names, word) {
			known = append(known, word)
		}
	}
	return known
}

// ofNouns are commands whose noun is said in the plural, or behind the verb.
func ofNouns(root *cobra.Command, args, verbs []string) (commands []string) {
	of := func(word string, verbs ...string) {
		for _, noun := range root.Commands() {
			if noun.Name() == word || noun.Name()+"s" == word {
				for _, verb := range having(noun, verbs) {
					commands = append(commands, noun.Name()+" "+verb)
				}
			}
		}
	}
	of(args[0], "list")
	if len(commands) == 0 && len(args) > 1 {
		of(args[1], verbs...)
	}
	return commands
}

// alike are subcommands that say that they are meant by a word, that begin with it, or that are
// spelt much like it: a letter of three may be wrong, two at most, and not the first, which most
// have right.
func alike(cmd *cobra.Command, word string) []string {
	word = strings.ToLower(word)
	cmd.SuggestionsMinimumDistance = min(2, (len(word)+1)/3)
	return slices.DeleteFunc(cmd.SuggestionsFor(word), func(name string) bool {
		c, _, _ := cmd.Find([]string{name})
		return !strings.HasPrefix(name, word) && !slices.Contains(c.SuggestFor, word) &&
			(name[:1] != word[:1] || slices.Contains(destructive, name))
	})
}

// mostOthers is how many commands of other nouns are named rather than those of the noun.
const mostOthers = 2

// ofOtherNouns are commands with verbs that the noun asked for does not have. What destroys is not
// offered for another noun than the one that is named.
func ofOtherNouns(cmd *cobra.Command, verbs []string) (commands []string) {
	for _, noun := range cmd.Root().Commands() {
		if noun == cmd || !noun.IsAvailableCommand() {
			continue
		}
		for _, verb := range having(noun, verbs) {
			if !cmd.HasParent() || !slices.Contains(destructive, verb) {
				commands = append(commands, noun.Name()+" "+verb)
			}
		}
	}
	return commands
}

func subcommandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}
