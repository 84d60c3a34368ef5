package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write man pages of section 8 into a folder",
		Example:     "  sextant man share/man/man8",
		Annotations: seeAlso("sextant completion"),
		Hidden:      true,
		Args:        takes("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make folder: %w; name one that this user can write to", err)
			}
			return writeManPages(cmd.Root(), args[0])
		},
	}
}

// writeManPages writes a page for a command and each one below it: sextant-service-list.8.
func writeManPages(cmd *cobra.Command, folder string) error {
	file := filepath.Join(folder, pageName(cmd.CommandPath())+".8")
	if err := os.WriteFile(file, []byte(manPage(cmd)), 0o644); err != nil {
		return fmt.Errorf("write man page: %w", err)
	}
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if err := writeManPages(c, folder); err != nil {
			return err
		}
	}
	return nil
}

func pageName(commandPath string) string { return strings.ReplaceAll(commandPath, " ", "-") }

const exitStatus = `.SH EXIT STATUS
0 if all went well, 1 if the command failed (of diff: if there are differences), 2 if the command line makes no sense,
3 if what was named is not there, 4 if it conflicts with what is there or was refused, 5 if the agent is not reachable.
.SH ENVIRONMENT
SEXTANT_OUTPUT, SEXTANT_SOCKET, SEXTANT_TIMEOUT, SEXTANT_QUIET, SEXTANT_VERBOSE and SEXTANT_COLOR stand for the options
that are common to all commands; the command line counts more. NO_COLOR turns colours off.
`

// manPage writes a command's help in the man macros, man(7).
func manPage(cmd *cobra.Command) string {
	var page strings.Builder
	name := pageName(cmd.CommandPath())
	fmt.Fprintf(&page, ".TH %q 8 \"\" %q Sextant\n", strings.ToUpper(name), "Sextant "+version)
	fmt.Fprintf(&page, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&page, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	description := cmd.Long
	if description == "" {
		description = cmd.Short + "."
	}
	fmt.Fprintf(&page, ".SH DESCRIPTION\n%s\n", roff(description))
	manCommands(&page, cmd)
	manOptions(&page, "OPTIONS", cmd.NonInheritedFlags())
	manOptions(&page, "COMMON OPTIONS", cmd.InheritedFlags())
	page.WriteString(exitStatus)
	if cmd.Example != "" {
		fmt.Fprintf(&page, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	manSeeAlso(&page, cmd)
	return page.String()
}

func manCommands(page *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	page.WriteString(".SH COMMANDS\n")
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(page, ".TP\n.B %s\n%s\n", roff(pageName(c.CommandPath())+"(8)"),
				roff(c.Short))
		}
	}
}

func manOptions(page *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(page, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		kind, usage := pflag.UnquoteUsage(f)
		names := "--" + f.Name
		if f.Shorthand != "" {
			names = "-" + f.Shorthand + ", " + names
		}
		fmt.Fprintf(page, ".TP\n\\fB%s\\fR \\fI%s\\fR\n%s\n", roff(names), roff(kind), roff(usage))
	})
}

func manSeeAlso(page *strings.Builder, cmd *cobra.Command) {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, pageName(cmd.Parent().CommandPath())+"(8)")
	}
	for also := range strings.SplitSeq(cmd.Annotations["see also"], ", ") {
		pages = append(pages, pageName(also)+"(8)")
	}
	fmt.Fprintf(page, ".SH SEE ALSO\n%s\n", roff(strings.Join(pages, ", ")))
}

// roff protects text from being read as markup.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
