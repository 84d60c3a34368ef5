// Release packs what scripts/stage.sh laid out: as an RPM, as an archive of files, or, for all
// architectures at once, as an OCI image. The same files at the same SOURCE_DATE_EPOCH give the
// same bytes.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// A job is what is packed, and into which file.
type job struct {
	version string
	out     string
	key     string    // of gpg, which signs packages; "" leaves them unsigned
	time    time.Time // of all files
	stages  []stage
}

// A stage is a folder with the files of one architecture, by Go's name of it.
type stage struct {
	architecture, folder string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var j job
	cmd := &cobra.Command{
		Use:   "release rpm|tar|image ARCHITECTURE=FOLDER...",
		Short: "Pack what scripts/stage.sh laid out: rpm and tar take one folder",
		Args:  cobra.MinimumNArgs(2), SilenceErrors: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := j.settle(args[1:]); err != nil {
				return err
			}
			return j.pack(args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&j.version, "version", "", "version of the release")
	flags.StringVar(&j.out, "out", "", "file to write")
	flags.StringVar(&j.key, "key", "", "key of gpg that signs an RPM")
	cmd.SetArgs(args)
	return cmd.Execute()
}

// settle reads what the command line and the environment say.
func (j *job) settle(folders []string) error {
	if j.version == "" || j.out == "" {
		return errors.New("--version and --out are needed")
	}
	for _, arg := range folders {
		architecture, folder, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not ARCHITECTURE=FOLDER", arg)
		}
		j.stages = append(j.stages, stage{architecture, folder})
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("read SOURCE_DATE_EPOCH: %w; set it to the seconds of the commit", err)
	}
	j.time = time.Unix(seconds, 0).UTC()
	return nil
}

func (j job) pack(form string) error {
	pack, ok := map[string]func(job) ([]byte, error){
		"rpm": packRPM, "tar": packArchive, "image": packImage,
	}[form]
	if !ok {
		return fmt.Errorf("there is no form %q; choose rpm, tar or image", form)
	}
	if form != "image" && len(j.stages) != 1 {
		return fmt.Errorf("%s takes one folder, not %d", form, len(j.stages))
	}
	packed, err := pack(j)
	if err != nil {
		return fmt.Errorf("pack %s: %w", j.out, err)
	}
	if err := os.WriteFile(j.out, packed, 0o644); err != nil {
		return fmt.Errorf("write release file: %w", err)
	}
	return nil
}
