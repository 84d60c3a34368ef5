package main

import (
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/serverload"
	"sextant/lab/webserver"
	"sextant/packet/lists"
)

func (a *app) emulateCommand() *cobra.Command {
	c, loadFile := webserver.Config{}, ""
	cmd := &cobra.Command{
		Use:   "emulate --listen ADDRESS",
		Short: "Run a web server that is as slow as a machine of some cores and workers",
		Long: `Run a web server that answers as slowly as a machine of C cores and W workers would, without using the CPU:

  GET /?ms=12.5&bytes=1000   answer 1000 bytes after 12.5 ms of CPU time
  GET /status                {"busy":3,"queued":0,"served":1234}

A request that states no CPU time gets one from an exponential distribution. Every answer names its server in the
header X-Server.`,
		Example: "  sextant emulate --name web1 --listen [::]:8080 --cores 2 " +
			"--workers 32",
		Annotations: seeAlso("sextant loadgen", "sextant lab"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(c.Addresses) == 0 {
				return usageErrorf("no address is given; name one with --listen, like --listen " +
					"[::]:8080")
			}
			if loadFile != "" {
				gauge, err := serverload.OpenGauge(loadFile)
				if err != nil {
					return err
				}
				defer gauge.Close()
				c.Tell = gauge.Set
			}
			server, err := webserver.Listen(c)
			if err != nil {
				return err
			}
			if !a.quiet {
				a.say("%s: %d cores, %d workers, on %s", c.Name, c.Cores, c.Workers,
					lists.Join(server.Addresses(), ", "))
			}
			return server.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.Name, "name", "emulated", "name of the server, in the header X-Server")
	flags.StringSliceVar(&c.Addresses, "listen", nil,
		"address and port to listen on; may be given several times")
	flags.IntVar(&c.Cores, "cores", 2, "cores of the emulated machine")
	flags.Float64Var(&c.Speed, "speed", 1, "of a core: at 0.5 requests take twice their CPU time")
	flags.IntVar(&c.Workers, "workers", 32, "connections that are served at a time")
	flags.IntVar(&c.Backlog, "backlog", 128, "connections that wait beyond those")
	flags.DurationVar(&c.Service, "service", 100*time.Millisecond,
		"mean CPU time of a request that states none")
	flags.Uint64Var(&c.Seed, "seed", 1, "of the distribution of such times")
	flags.StringVar(&loadFile, "load-file", "",
		"write how many workers are busy into the file, for load: memory:FILE")
	flags.BoolVar(&c.KeepAlive, "keep-alive", false, "serve several requests per connection")
	return cmd
}
