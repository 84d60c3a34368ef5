package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// A repository is the tree that the rules judge: this one, or a fixture.
type repository struct {
	root     string
	tree     []folder
	files    []string // slash-separated, relative to root
	texts    map[string][]byte
	sources  []source
	packages []*packages.Package // with their test variants
	broken   []finding           // what could not be parsed or type-checked
}

// A source is a Go file outside testdata that a person wrote.
type source struct {
	name string // relative to the root
	fset *token.FileSet
	file *ast.File
}

func (s source) dir() string          { return path.Dir(s.name) }
func (s source) isTest() bool         { return isTest(s.name) }
func (s source) line(at ast.Node) int { return s.fset.Position(at.Pos()).Line }

func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

// opened keeps repositories between tests: loading packages takes seconds.
var opened = map[string]*repository{}

func open(t *testing.T, root string, tree []folder) *repository {
	t.Helper()
	if opened[root] != nil {
		return opened[root]
	}
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	r := &repository{root: absolute, tree: tree, files: listFiles(t, absolute),
		texts: map[string][]byte{}}
	for _, name := range r.files {
		text, err := os.ReadFile(filepath.Join(absolute, name))
		if err != nil {
			t.Fatal(err)
		}
		r.texts[name] = text
	}
	r.parse()
	if r.has("go.mod") {
		r.load(t)
	}
	opened[root] = r
	return r
}

// listFiles asks git for what is, or would be, committed. A tree without git, such as a release
// archive or a fixture, is walked.
func listFiles(t *testing.T, root string) []string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		return walkFiles(t, root)
	}
	// A clone that belongs to somebody else, as in a container, is fine to read.
	git := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others",
		"--exclude-standard")
	git.Dir = root
	out, err := git.Output()
	if err != nil {
		t.Fatalf("listing the files of %s with git: %v", root, err)
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		// A file that is deleted, and the deletion not committed, is still listed.
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	return files
}

func walkFiles(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || entry.Name() == "want.txt" {
			return err
		}
		relative, err := filepath.Rel(root, name)
		files = append(files, filepath.ToSlash(relative))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func inTestdata(name string) bool { return strings.Contains("/"+name, "/testdata/") }

func (r *repository) parse() {
	for _, name := range r.files {
		if path.Ext(name) != ".go" || inTestdata(name) {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, r.texts[name],
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			continue // loading the packages finds it too
		}
		if !ast.IsGenerated(file) {
			r.sources = append(r.sources, source{name, fset, file})
		}
	}
}

// load type-checks the module's packages with their tests. Packages from elsewhere come as export
// data. The package encoding is added for its interfaces, which are called by reflection.
func (r *repository) load(t *testing.T) {
	t.Helper()
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedImports |
		packages.NeedModule |
		packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedForTest
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: r.root, Tests: true}, "./...",
		"encoding")
	if err != nil {
		t.Fatalf("loading the packages of %s: %v", r.root, err)
	}
	r.packages = loaded
	seen := map[finding]bool{}
	for _, p := range loaded {
		for _, e := range p.Errors {
			if e.Pos == "" && strings.HasPrefix(e.Msg, "# ") {
				continue // the compiler's output as a whole, before its lines
			}
			name, rest, _ := strings.Cut(e.Pos, ":")
			number, _, _ := strings.Cut(rest, ":")
			line, _ := strconv.Atoi(number) // an error of a whole package has no line
			f := finding{r.relative(name), line, e.Msg, "the rules judge what compiles"}
			if !seen[f] {
				seen[f] = true
				r.broken = append(r.broken, f)
			}
		}
	}
}

func TestPackagesCompile(t *testing.T) {
	check(t, "compile", func(r *repository) []finding { return r.broken })
}

// isBinary tells files without lines, as git does.
func isBinary(text []byte) bool { return bytes.IndexByte(text, 0) >= 0 }

// has tells whether there is a file, or a directory with files, of that name.
func (r *repository) has(name string) bool {
	for _, file := range r.files {
		if name == "." || file == name || strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}

// relative is the name under which findings mention a file of the repository.
func (r *repository) relative(name string) string {
	relative, err := filepath.Rel(r.root, name)
	if err != nil {
		return name
	}
	return filepath.ToSlash(relative)
}
