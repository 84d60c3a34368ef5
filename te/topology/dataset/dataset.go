package dataset

import (
	"archive/zip"
	"bytes"
	_ "embed" // for the archive
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"sextant/te/topology"
	"sextant/te/topology/format"
)

// The archive has a folder for each set, with the files as they were published.
//
//go:embed topologies.zip
var archive []byte

// ErrUnknown is the error of [Open] for a name that is in no set.
var ErrUnknown = errors.New("the topology is in no data set")

// Set is a collection of topologies from one source. Delays of different sets can't be compared.
type Set struct {
	Name      string
	About     string
	Source    string
	Licence   string
	DelayUnit time.Duration // 0 if the source does not say
}

// Sets lists the sets, in the order of README.md.
func Sets() []Set { return slices.Clone(sets) }

var sets = []Set{
	{"paper-table3", "four ISPs, routers that carry transit traffic: Table III of the paper on " +
		"segmentable disjoint paths",
		"derived from rocketfuel-raw", "as rocketfuel-raw", time.Millisecond},
	{"rocketfuel-raw", "six ISPs as measured in 2002",
		"Rocketfuel project, University of Washington (IMW 2002)",
		"none stated", time.Millisecond},
	{"rocketfuel", "the six ISPs with capacities", "svissicchio/Repetita, data/2016RocketFuelUCL",
		"none stated", time.Millisecond},
	{"defo", "three synthetic ISPs", "svissicchio/Repetita, data/2015DEFO", "none stated", 0},
	{"zoo", "260 networks, IGP weights inverse to capacity",
		"Internet Topology Zoo (JSAC 2011), by svissicchio/Repetita",
		"none stated by Repetita; the Zoo is free to use with citation", 0},
	{"zoo-unary", "the same networks, all IGP weights 1",
		"Internet Topology Zoo (JSAC 2011), by svissicchio/Repetita",
		"none stated by Repetita; the Zoo is free to use with citation", 0},
	{"caida-2024-08", "98 autonomous systems, one node a place",
		"CAIDA ITDK 2024-08, by piotrjurkiewicz/topohub",
		"MIT (topohub); CAIDA ITDK terms for the origin", time.Microsecond},
	{"backbone", "11 synthetic backbones between real cities", "piotrjurkiewicz/topohub", "MIT",
		time.Microsecond},
	{"large", "the AS graph of January 2000, and generated ISPs of 1000 to 10000 routers",
		"SNAP as-733 (as20000102, delay 1 has no unit); own (isp*, microseconds)",
		"none stated (as20000102); own (isp*)",
		time.Microsecond},
}

// unitless are the graphs whose delays have no unit although their set has one.
var unitless = []string{"large/as20000102_unit"}

// index lists the names of the topologies, and the files of each.
var index = sync.OnceValues(func() (map[string][]*zip.File, error) {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, fmt.Errorf("open the data sets in the program: %w", err)
	}
	files := map[string][]*zip.File{}
	for _, f := range r.File {
		name := strings.TrimSuffix(f.Name, ".graph")
		if strings.HasSuffix(f.Name, ".intra") {
			name = path.Dir(f.Name)
		}
		files[name] = append(files[name], f)
	}
	return files, nil
})

// Names lists the topologies of all sets, sorted.
func Names() []string {
	files, err := index()
	if err != nil {
		return nil // the archive is part of the program, and the tests open all of it
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Open reads a topology. The error is [ErrUnknown] if no set has it.
func Open(name string) (*topology.Graph, error) {
	files, err := index()
	if err != nil {
		return nil, err
	}
	var texts []format.File
	for _, f := range files[name] {
		text, err := content(f)
		if err != nil {
			return nil, fmt.Errorf("read %s from the data sets: %w", f.Name, err)
		}
		texts = append(texts, format.File{Name: f.Name, Text: text})
	}
	switch len(texts) {
	case 0:
		return nil, fmt.Errorf("%s: %w; %s", name, ErrUnknown, suggestion(name))
	case 1:
		return format.Read(texts[0], format.Options{Format: format.Repetita,
			DelayUnit: unitOf(name)})
	}
	// latencies come first in the archive
	return format.ReadRocketfuel(path.Base(name), texts[1], texts[0])
}

func content(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r)
	return text, errors.Join(err, r.Close())
}

func unitOf(name string) time.Duration {
	i := slices.IndexFunc(sets, func(s Set) bool { return s.Name == path.Dir(name) })
	if i < 0 || slices.Contains(unitless, name) {
		return 0
	}
	return sets[i].DelayUnit
}

// suggestion names what may have been meant: the same name in another case or set, or the sets.
func suggestion(name string) string {
	var near []string
	base := strings.ToLower(path.Base(name))
	for _, known := range Names() {
		if strings.ToLower(path.Base(known)) == base {
			near = append(near, known)
		}
	}
	if len(near) == 0 {
		return "list them with: sextant topology list"
	}
	return "did you mean " + strings.Join(near, " or ") + "?"
}
