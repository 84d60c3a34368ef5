// Command sextant-kubernetes serves Services of type LoadBalancer and Gateways by edges of Sextant:
// as the controller of a cluster, and on each node. It also says of a Service who serves it.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is set when the program is built.
var version = "unversioned"

func main() {
	root := &cobra.Command{Use: "sextant-kubernetes", Version: version,
		Short:         "Services and Gateways of Kubernetes on Sextant",
		SilenceUsage:  true,
		SilenceErrors: true}
	root.AddCommand(controllerCommand(), nodeCommand(), statusCommand())
	if err := root.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "sextant-kubernetes:", err)
		os.Exit(1)
	}
}
