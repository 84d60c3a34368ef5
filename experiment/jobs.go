package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Job is one part of an experiment, as its file has it. A sweep that is larger than a machine is a
// folder of such files: WriteJobs writes them, RunJob computes one, wherever the folder is mounted
// or copied to, and Merge collects what was computed and writes the report.
type Job struct {
	Experiment string `json:"experiment"`
	Part       string `json:"part"`
	Quick      bool   `json:"quick,omitempty"`
}

// partsOf is where the results of a folder of jobs are; quick ones are no results of others.
func partsOf(folder string, quick bool) string {
	if quick {
		return filepath.Join(folder, "parts-quick")
	}
	return filepath.Join(folder, "parts")
}

// errOther ends what is not computed now.
var errOther = errors.New("another part is asked for")

// WriteJobs writes one file for each part of an experiment into a folder, and returns how many. The
// names of the files sort in the order of the parts.
func WriteJobs(ctx context.Context, e Experiment, folder string, quick bool) (int, error) {
	names, err := parts(ctx, e, quick)
	if err != nil {
		return 0, err
	}
	for i, name := range names {
		text, err := json.Marshal(Job{e.Name, name, quick})
		if err != nil {
			return 0, fmt.Errorf("write the job %s: %w", name, err)
		}
		file := filepath.Join(folder, fmt.Sprintf("%05d-%s.json", i, name))
		if err := writeFile(file, append(text, '\n')); err != nil {
			return 0, err
		}
	}
	return len(names), nil
}

// parts lists the names of an experiment's parts, without computing one.
func parts(ctx context.Context, e Experiment, quick bool) ([]string, error) {
	var names []string
	r := &Recorder{options: Options{Quick: quick, Workers: 1}}
	r.choose = func(name string) bool {
		names = append(names, name)
		return false
	}
	if err := e.Run(ctx, r); !errors.Is(err, errOther) {
		if err == nil {
			err = errors.New("its parts cannot be computed one by one; run it as a whole with " +
				"sextant experiment run")
		}
		return nil, fmt.Errorf("%s: list the parts: %w", e.Name, err)
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(names)))
	if len(distinct) < 2 || len(distinct) < len(names) {
		return nil, fmt.Errorf("%s: its parts follow each other, or it is one; run it as a whole "+
			"with sextant experiment run", e.Name)
	}
	return names, nil
}

// ReadJob reads a job file.
func ReadJob(file string) (Job, error) {
	var j Job
	text, err := os.ReadFile(file)
	if err != nil {
		return j, fmt.Errorf("read the job: %w", err)
	}
	if err := json.Unmarshal(text, &j); err != nil || j.Experiment == "" || j.Part == "" {
		return j, fmt.Errorf("%s is not a job; sextant experiment jobs writes them", file)
	}
	return j, nil
}

// RunJob computes the part of a job, unless that is done, and leaves it beside the job's file.
func RunJob(ctx context.Context, e Experiment, j Job, file string) error {
	r := &Recorder{options: Options{Quick: j.Quick, Workers: 1},
		parts: partsOf(filepath.Dir(file), j.Quick)}
	computed := false
	r.choose = func(name string) bool {
		computed = computed || name == j.Part
		return name == j.Part
	}
	if err := e.Run(ctx, r); err != nil && !errors.Is(err, errOther) {
		return fmt.Errorf("%s, %s: %w", j.Experiment, j.Part, err)
	}
	if _, err := os.Stat(r.partFile(j.Part)); err != nil || !computed {
		return fmt.Errorf("%s has no part %q; write the jobs again with this version of sextant",
			j.Experiment, j.Part)
	}
	return nil
}

// Merge writes the report of an experiment from the parts that jobs have computed. The error names
// jobs that are not done.
func Merge(ctx context.Context, e Experiment, jobs string, o Options) (string, error) {
	names, err := parts(ctx, e, o.Quick)
	if err != nil {
		return "", err
	}
	source, target := &Recorder{parts: partsOf(jobs, o.Quick)}, newRecorder(e, o)
	var missing []string
	texts := map[string][]byte{}
	for _, name := range names {
		text, err := os.ReadFile(source.partFile(name))
		if err != nil {
			missing = append(missing, name)
		}
		texts[name] = text
	}
	if len(missing) > 0 {
		const shown = 5
		hint := ""
		if len(missing) == len(names) && !o.Quick {
			hint = ", with --quick if the jobs were written so"
		}
		return "", fmt.Errorf("%d of %d jobs in %s are not done: %s; run them, and merge again%s",
			len(missing), len(names), jobs,
			strings.Join(missing[:min(len(missing), shown)], ", "), hint)
	}
	for name, text := range texts {
		if err := writeFile(target.partFile(name), text); err != nil {
			return "", err
		}
	}
	target.options.Fresh = false
	target.choose = func(name string) bool { _, known := texts[name]; return known }
	report, err := target.conduct(ctx, e)
	if errors.Is(err, errOther) {
		return "", fmt.Errorf("%s has parts for which there is no job, since others decide them; "+
			"run it as a whole with sextant experiment run", e.Name)
	}
	return report, err
}
