package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) manCommand() *cobra.Command {
	markdown := false
	cmd := &cobra.Command{
		Use: "man FOLDER", Short: "Write man pages of section 8 into a folder",
		Example: "  sextant man share/man/man8\n" +
			"  sextant man --markdown site/commands",
		Annotations: seeAlso("sextant completion"),
		Hidden:      true,
		Args:        takes("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make folder: %w; name one that this user can write to", err)
			}
			write := writeManPages
			if markdown {
				write = writeMarkdown
			}
			return write(cmd.Root(), args[0])
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "pages in Markdown instead")
	return cmd
}

// writeMarkdown writes a page for a command and each one below it: sextant_service_list.md.
func writeMarkdown(cmd *cobra.Command, folder string) error {
	cmd.DisableAutoGenTag = true // of those below, too
	return doc.GenMarkdownTree(cmd, folder)
}

// moreSections stand behind each description, in Markdown, which the generator reads.
const moreSections = `

# EXIT STATUS
0 if all went well, 1 if the command failed (of diff: if there are differences), 2 if the command
line makes no sense, 3 if what was named is not there, 4 if it conflicts with what is there or was
refused, 5 if the agent is not reachable.

# ENVIRONMENT
SEXTANT_OUTPUT, SEXTANT_SOCKET, SEXTANT_ADDRESS, SEXTANT_CONTEXT, SEXTANT_TOKEN_FILE, SEXTANT_CA,
SEXTANT_TIMEOUT, SEXTANT_QUIET, SEXTANT_VERBOSE and SEXTANT_COLOR stand for the options that are
common to all commands; the command line counts more, and --socket, --address or --context there
more than all three here. SEXTANT_BPF stands for --bpf of those that have it, and SEXTANT_CONTEXTS
names the file of contexts. NO_COLOR turns colours off.`

// writeManPages writes a page for a command and each one below it: sextant-service-list.8.
func writeManPages(cmd *cobra.Command, folder string) error {
	described := *cmd
	described.Long = cmp.Or(cmd.Long, cmd.Short+".") + moreSections
	described.DisableAutoGenTag = true
	var page bytes.Buffer
	header := doc.GenManHeader{Section: "8", Source: "Sextant " + version, Manual: "Sextant"}
	if err := doc.GenMan(&described, &header, &page); err != nil {
		return fmt.Errorf("write man page of %s: %w", cmd.CommandPath(), err)
	}
	// The generator ends with SEE ALSO: the commands above and below this one.
	also := strings.ReplaceAll(pageName(cmd.Annotations["see also"]), ",-", "(8)\\fP, \\fB")
	fmt.Fprintf(&page, ".PP\n\\fB%s(8)\\fP\n", also)
	file := filepath.Join(folder, pageName(cmd.CommandPath())+".8")
	if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
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
