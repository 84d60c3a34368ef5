package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sextant/agent"
	"sextant/agent/api"
	"sextant/controller"
	"sextant/lab/linkemu"
	"sextant/lab/loadgen"
	"sextant/lab/webserver"
	"sextant/te/topology"
	"sextant/te/topology/format"
)

// TestMain lets the test program be what labs and experiments call {self} for: "agent -f FILE",
// "emulate ...", "load URL ..." and "lab wire FILE".
func TestMain(m *testing.M) {
	programs := map[string]func(context.Context, []string) error{
		"agent": runAgent, "emulate": runEmulate, "loadgen": runLoad, "lab": runWire,
		"linkstate": runLinkState, "connect": runConnect,
		"controller": runController, "besiege": runSiege, "meter": runMeter,
	}
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		code := m.Run()
		os.RemoveAll(builtFolder)
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := programs[os.Args[1]](ctx, os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// builtFolder has the program of build, until the tests are over.
var builtFolder string

// build builds the program once for all tests: linking it takes longer than most of them.
var build = sync.OnceValues(func() (program string, err error) {
	if builtFolder, err = os.MkdirTemp("", "sextant-e2e-"); err != nil {
		return "", err
	}
	program = filepath.Join(builtFolder, "sextant")
	if out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program,
		"sextant/cmd/sextant").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return program, nil
})

// buildSextant returns where the program is.
func buildSextant(t *testing.T) string {
	t.Helper()
	program, err := build()
	must(t, err)
	return program
}

func runAgent(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	file := flags.String("f", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	node, err := api.LoadNode(*file)
	if err != nil {
		return err
	}
	return agent.Run(ctx, agent.Options{
		Node: node, PinDirectory: os.Getenv("SEXTANT_BPF"), Version: "test",
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// runController runs a controller by its file.
func runController(ctx context.Context, args []string) error {
	text, err := os.ReadFile(args[len(args)-1]) // behind -f, or alone
	if err != nil {
		return err
	}
	c, err := controller.Parse(text)
	if err != nil {
		return err
	}
	return controller.Run(ctx, controller.Options{Config: c, Version: "test",
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Open: func(name string) (*topology.Graph, error) {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			return format.Read(format.File{Name: name, Text: text}, format.Options{})
		}})
}

func runWire(ctx context.Context, args []string) error { return linkemu.Run(ctx, args[1]) }

func runEmulate(ctx context.Context, args []string) error {
	var c webserver.Config
	flags := flag.NewFlagSet("emulate", flag.ContinueOnError)
	flags.StringVar(&c.Name, "name", "", "")
	flags.IntVar(&c.Cores, "cores", 0, "")
	flags.IntVar(&c.Workers, "workers", 0, "")
	flags.IntVar(&c.Backlog, "backlog", 0, "")
	listen := flags.String("listen", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c.Addresses = strings.Split(*listen, ",")
	server, err := webserver.Listen(c)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

func runLoad(ctx context.Context, args []string) error {
	c := loadgen.Config{URL: args[0]}
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.Float64Var(&c.Rate, "rate", 0, "")
	flags.DurationVar(&c.Service, "service", 0, "")
	flags.Uint64Var(&c.Seed, "seed", 0, "")
	flags.DurationVar(&c.WarmUp, "warm-up", 0, "")
	flags.DurationVar(&c.Duration, "duration", time.Second, "")
	closed := loadgen.DownloadConfig{URL: args[0]}
	each := flags.Bool("each", false, "")
	flags.IntVar(&closed.Workers, "workers", 0, "")
	flags.DurationVar(&closed.Timeout, "deadline", 0, "")
	sources := flags.String("sources", "", "")
	err := flags.Parse(args[1:])
	if err != nil {
		return err
	}
	if c.Sources, err = loadgen.ParseSources(*sources); err != nil {
		return err
	}
	if closed.Workers > 0 {
		closed.Duration, closed.Sources = c.Duration, c.Sources
		return runDownload(ctx, closed)
	}
	lines := json.NewEncoder(os.Stdout)
	if *each {
		c.Each = func(r loadgen.Response) { lines.Encode(loadgen.Line{Response: &r}) }
	}
	result, err := loadgen.Run(ctx, c)
	if err != nil {
		return err
	}
	return lines.Encode(loadgen.Line{Open: result})
}

func runDownload(ctx context.Context, c loadgen.DownloadConfig) error {
	lines := json.NewEncoder(os.Stdout)
	c.Each = func(f loadgen.Fetch) { lines.Encode(loadgen.Line{Fetch: &f}) }
	result, err := loadgen.Download(ctx, c)
	if result == nil {
		return err
	}
	return lines.Encode(loadgen.Line{Result: result}) // also of a load that was ended
}
