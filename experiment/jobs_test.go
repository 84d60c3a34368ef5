package experiment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// squares is an experiment of parts that do not depend on each other; computed counts them.
func squares(computed *int) Experiment {
	return Experiment{Name: "squares", Title: "Squares", Source: "Pythagoras",
		Run: func(ctx context.Context, r *Recorder) error {
			n, sum := 4, 0
			if r.Quick() {
				n = 2
			}
			if err := SideBySide(ctx, 1, n, func(_ context.Context, i int) error {
				x, err := Part(r, fmt.Sprintf("square-%d", i), func() (int, error) {
					*computed++
					return i * i, nil
				})
				sum += x
				return err
			}, nil); err != nil {
				return err
			}
			r.Note("the sum is %d", sum)
			return nil
		}}
}

// Jobs that are computed one by one, some twice, merge to the report that a whole run writes; one
// that is not done is named.
func TestJobs(t *testing.T) {
	jobs := t.TempDir()
	for quick, want := range map[bool]int{false: 4, true: 2} { // quick parts are no others' parts
		computed := 0
		e, o := squares(&computed), Options{Folder: t.TempDir(), Quick: quick}
		n, err := WriteJobs(t.Context(), e, jobs, quick)
		if err != nil || n != want || computed != 0 {
			t.Fatalf("%d jobs, %v, with %d parts computed; want %d and none", n, err, computed,
				want)
		}
		files, err := filepath.Glob(filepath.Join(jobs, "*.json"))
		if err != nil || len(files) < want {
			t.Fatalf("files %v, %v", files, err)
		}
		files = files[:want]
		do := func(file string) {
			t.Helper()
			j, err := ReadJob(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := RunJob(t.Context(), e, j, file); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range files[1:] {
			do(file)
			do(file)
		}
		if _, err := Merge(t.Context(), e, jobs, o); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("1 of %d jobs", want)) ||
			!strings.Contains(err.Error(), "square-0") {
			t.Errorf("merged without the first part: %v", err)
		}
		do(files[0])
		report, err := Merge(t.Context(), e, jobs, o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(report)
		sum := map[bool]string{false: "the sum is 14", true: "the sum is 1"}[quick]
		if err != nil || !strings.Contains(string(text), sum) || computed != want {
			t.Errorf("%d parts were computed, want %d; %v\n%s", computed, want, err, text)
		}
	}
}

// What is no job, or of no part, is refused.
func TestNoJob(t *testing.T) {
	computed := 0
	e, folder := squares(&computed), t.TempDir()
	file := filepath.Join(folder, "x.json")
	if _, err := ReadJob(file); err == nil {
		t.Error("a file that is not there is a job")
	}
	for _, text := range []string{"", "[]", "{}", `{"experiment": "squares"}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if j, err := ReadJob(file); err == nil {
			t.Errorf("%q is the job %+v", text, j)
		}
	}
	if err := RunJob(t.Context(), e, Job{Experiment: "squares", Part: "square-9"},
		file); err == nil ||
		!strings.Contains(err.Error(), "square-9") || computed > 0 {
		t.Errorf("a part that is not there: %v, %d computed", err, computed)
	}
	sequence := Experiment{Name: "sequence", Run: func(_ context.Context, r *Recorder) error {
		for _, name := range []string{"one", "two"} {
			if _, err := Part(r, name, func() (int, error) { return 1, nil }); err != nil {
				return err
			}
		}
		return nil
	}}
	if n, err := WriteJobs(t.Context(), sequence, folder, false); err == nil {
		t.Errorf("an experiment whose parts follow each other has %d jobs", n)
	}
	whole := Experiment{Name: "whole", Run: func(context.Context, *Recorder) error { return nil }}
	if n, err := WriteJobs(t.Context(), whole, folder, false); err == nil {
		t.Errorf("an experiment without parts has %d jobs", n)
	}
}

// What jobs have not computed, merging does not compute: a part that others decide has no job.
func TestMergeComputesNothing(t *testing.T) {
	computed := 0
	first := squares(&computed)
	e := first
	e.Run = func(ctx context.Context, r *Recorder) error {
		if err := first.Run(ctx, r); err != nil {
			return err
		}
		_, err := Part(r, "last", func() (int, error) {
			t.Error("merging computes")
			return 1, nil
		})
		return err
	}
	jobs := t.TempDir()
	if n, err := WriteJobs(t.Context(), e, jobs, false); err != nil || n != 4 {
		t.Fatalf("%d jobs, %v", n, err)
	}
	files, err := filepath.Glob(filepath.Join(jobs, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		j, err := ReadJob(file)
		if err == nil {
			err = RunJob(t.Context(), first, j, file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Merge(t.Context(), e, jobs, Options{Folder: t.TempDir()}); err == nil ||
		!strings.Contains(err.Error(), "no job") {
		t.Errorf("merged: %v", err)
	}
}
