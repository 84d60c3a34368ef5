package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sextant/config"
)

// globals are the flags that all commands share.
type globals struct {
	output  string
	socket  string
	address string // of an agent or a controller elsewhere
	context string // names one
	credentials
	breaks  bool // connections may end
	timeout time.Duration
	quiet   bool
	verbose int
	color   string
}

// app is one run of the program.
type app struct {
	*env
	globals
	life     context.Context // of this run
	command  *cobra.Command  // nil: none yet
	unhelped error           // help was asked for about what is not there
}

// run executes the command line of an env and returns the exit code.
func run(ctx context.Context, e *env) int {
	a := &app{env: e, life: ctx}
	e.stdin = newInterruptible(ctx, e.stdin)
	output := &noted{to: e.stdout}
	e.stdout = output
	root := a.root()
	root.SetArgs(e.args)
	cmd, err := root.ExecuteContextC(ctx)
	err = output.instead(cmp.Or(err, a.unhelped))
	if unknown, ok := errors.AsType[unknownCommand](err); ok {
		cmd = unknown.of
	}
	a.report(cmd, err)
	return exitCode(err)
}

const help = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}{{with
index .Annotations "see also"}}
See also:
  {{.}}
{{end}}`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sextant",
		Short: "SRv6 load balancer: service hunting in eBPF",
		Long: `Sextant spreads connections over servers by SRv6 service hunting.

Commands are a noun and a verb: "service list", "service add". "sextant demo" compares service
hunting with random choice, in network namespaces of this machine.`,
		Example:           "  sextant demo\n  sextant lab up quickstart",
		Annotations:       seeAlso("sextant lab", "sextant agent", "sextant status"),
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.settle(cmd) },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
	}
	showVersion := false
	root.Flags().BoolVarP(&showVersion, "version", "V", false, "print the version, and end")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if showVersion {
			return a.showVersion()
		}
		return chooseSubcommand(cmd, args)
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetHelpTemplate(help)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cmp.Or(refuseUnknown(cmd, cmd.Flags().Args()), error(usageError{err}))
	})
	a.addGlobals(root.PersistentFlags())
	root.AddGroup(
		&cobra.Group{ID: groupNode, Title: "On a node:"},
		&cobra.Group{ID: groupState, Title: "What runs:"},
		&cobra.Group{ID: groupPlan, Title: "Networks and paths:"},
		&cobra.Group{ID: groupTry, Title: "Try and measure:"},
	)
	root.AddCommand(a.commands()...)
	settleArguments(root)
	a.settleHelp(root)
	return root
}

// settleArguments has commands take the arguments that they name, and no others, and offer files
// only where their usage names one.
func settleArguments(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		settleArguments(c)
		if c.Args == nil {
			c.Args = takes()
		}
		if c.ValidArgsFunction == nil && !c.HasSubCommands() &&
			!strings.Contains(c.Use, "FILE") && !strings.Contains(c.Use, "FOLDER") {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}

// Groups of commands in the help.
const (
	groupNode  = "node"
	groupState = "state"
	groupPlan  = "plan"
	groupTry   = "try"
)

func (a *app) commands() []*cobra.Command {
	return slices.Concat(
		in(groupNode, a.agentCommand(), a.controllerCommand(), a.unloadCommand(), a.checkCommand(),
			a.diffCommand(),
			a.applyCommand(), a.tokenCommand(), a.contextCommand(), a.doctorCommand(),
			a.supportBundleCommand()),
		in(groupState, a.statusCommand(), a.consoleCommand(), a.explainCommand(), a.traceCommand(),
			a.serviceCommand(),
			a.backendCommand(), a.flowCommand(), a.sidCommand(),
			a.policyCommand(), a.mergeCommand(),
			a.bgpCommand(), a.routeCommand(),
			a.mapCommand(), a.configCommand(), a.monitorCommand(), a.topCommand(),
			a.captureCommand(), a.telemetryCommand(), a.ipvsadmCommand(), a.convertCommand()),
		in(groupPlan, a.topologyCommand(), a.pathCommand(), a.protectCommand()),
		in(groupTry, a.demoCommand(), a.labCommand(), a.loadgenCommand(), a.loadCommand(),
			a.emulateCommand(), a.experimentCommand(), a.simCommand()),
		in("", a.completionCommand(), a.versionCommand(), a.manCommand()))
}

func in(group string, commands ...*cobra.Command) []*cobra.Command {
	for _, c := range commands {
		c.GroupID = group
	}
	return commands
}

func (a *app) addGlobals(flags *pflag.FlagSet) {
	flags.StringVarP(&a.output, "output", "o", "table",
		"format of the output: "+strings.Join(formats, ", "))
	flags.StringVar(&a.socket, "socket", config.DefaultSocket, "Unix socket of the agent")
	flags.StringVar(&a.address, "address", "",
		"HOST:PORT of an agent elsewhere; with --token-file, and --ca")
	flags.StringVar(&a.context, "context", "", "name of an agent elsewhere, see context")
	flags.StringVar(&a.token, "token-file", "", "file that holds the token for --address")
	flags.StringVar(&a.ca, "ca", "", "certificate that signs that of --address, in PEM")
	flags.DurationVar(&a.timeout, "timeout", 5*time.Second, "how long to wait for the agent")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "print nothing but what was asked for")
	flags.CountVarP(&a.verbose, "verbose", "v", "say more on stderr")
	flags.StringVar(&a.color, "color", "auto", "colours: auto, always or never")
}

// whereabouts are the flags that say which agent is meant: one on the command line counts more than
// all of the environment.
var whereabouts = []string{"socket", "address", "context"}

// variableOf is the environment variable that stands for a flag.
func variableOf(f *pflag.Flag) string {
	return "SEXTANT_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// settle lets the environment speak where the command line does not, and checks what both said.
func (a *app) settle(cmd *cobra.Command) error {
	wrong := refuseAgentSocket(cmd)
	named := slices.ContainsFunc(whereabouts, cmd.Flags().Changed)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value := a.getenv(variableOf(f))
		if cmd.InheritedFlags().Lookup(f.Name) == nil || f.Changed || value == "" ||
			named && slices.Contains(whereabouts, f.Name) {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil && wrong == nil {
			wrong = usageErrorf("environment variable %s: %w", variableOf(f), err)
		}
	})
	if wrong != nil {
		return wrong
	}
	a.command = cmd
	if err := a.refuseElsewhere(cmd); err != nil {
		return err
	}
	if err := oneOf("output", a.output, formats); err != nil {
		return err
	}
	return oneOf("color", a.color, []string{"auto", "always", "never"})
}

func oneOf(flag, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return usageErrorf("unknown --%s %q; write %s", flag, value, strings.Join(known, ", "))
}

// coloured says whether stdout gets colours.
func (a *app) coloured() bool {
	return a.color == "always" || a.color == "auto" && a.terminal && a.getenv("NO_COLOR") == ""
}

// noun makes a command that only groups others.
func noun(use, short string, also map[string]string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Annotations: also, Args: cobra.ArbitraryArgs,
		RunE: chooseSubcommand}
	cmd.AddCommand(subcommands...)
	return cmd
}

// takes checks the number of arguments by their names, those in brackets optional.
func takes(names ...string) cobra.PositionalArgs {
	least := 0
	for _, name := range names {
		if !strings.HasPrefix(name, "[") {
			least++
		}
	}
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usageErrorf("missing %s", strings.Join(names[len(args):], " "))
		case len(args) > len(names):
			return usageErrorf("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// seeAlso is shown at the end of a command's help.
func seeAlso(commands ...string) map[string]string {
	return map[string]string{"see also": strings.Join(commands, ", ")}
}

// timed makes the run of a command whose questions to a daemon have the time of --timeout together.
func (a *app) timed(do func(context.Context, *cobra.Command, []string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, cancel := a.withTimeout(cmd)
		defer cancel()
		return do(ctx, cmd, args)
	}
}

// withTimeout bounds a question to the agent.
func (a *app) withTimeout(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return context.WithTimeout(cmd.Context(), a.timeout)
}
