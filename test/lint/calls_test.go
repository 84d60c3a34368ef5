package lint

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"path"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// A ban names something of another package that must not be used, and what to do instead.
type ban struct {
	pkg string // a package, or with a slash at the end all below it
	// a function, variable or type; "" for all; "*" for the functions that use a global generator
	name string
	mend string
}

// Floors 0 and 1 are functions of plain values, outside their tests.
var bannedInPure = []ban{
	{"os", "", "take the bytes, or a function that gets them, as an argument"},
	{"os/", "", "the world begins on floor 2"},
	{"io/ioutil", "", "take the bytes as an argument"},
	{"net", "", "addresses are net/netip; sockets are on floor 2"},
	{"net/http", "", "sockets are on floor 2"},
	{"log", "", "return an error or a value; the caller logs"},
	{"log/slog", "", "return an error or a value; the caller logs"},
	{"context", "", "a pure function ends by itself"},
	{"syscall", "", "system calls are on floor 2"},
	{"golang.org/x/sys/unix", "", "system calls are on floor 2"}, // x/sys/cpu has none
	{"github.com/cilium/ebpf", "", "the kernel is on floor 2"},
	{"github.com/cilium/ebpf/", "", "the kernel is on floor 2"},
	{"github.com/vishvananda/", "", "the kernel is on floor 2"},
	{"crypto/rand", "", "take the random bytes as an argument"},
	{"fmt", "Print", "return the text"},
	{"fmt", "Printf", "return the text"},
	{"fmt", "Println", "return the text"},
	{"time", "Now", "take the time as an argument"},
	{"time", "Since", "take the duration as an argument"},
	{"time", "Until", "take the duration as an argument"},
	{"time", "Sleep", "a pure function does not wait"},
	{"time", "After", "a pure function does not wait"},
	{"time", "AfterFunc", "a pure function does not wait"},
	{"time", "Tick", "a pure function does not wait"},
	{"time", "NewTimer", "a pure function does not wait"},
	{"time", "NewTicker", "a pure function does not wait"},
}

var bannedInProduct = []ban{
	{"log", "", "use log/slog"},
	{"flag", "", "commands and their flags are cobra's"},
	{"io/ioutil", "", "use io or os"},
	{"context", "TODO", "pass the caller's context"},
	{"net/http", "Get", "use an http.Client with a timeout"},
	{"net/http", "Post", "use an http.Client with a timeout"},
	{"net/http", "Handle", "use an http.ServeMux of your own"},
	{"net/http", "HandleFunc", "use an http.ServeMux of your own"},
	{"net/http", "ListenAndServe", "use an http.Server with timeouts, which can be shut down"},
	{"net/http", "DefaultClient", "use an http.Client with a timeout"},
	{"net/http", "DefaultServeMux", "use an http.ServeMux of your own"},
	{"github.com/prometheus/client_golang/prometheus", "MustRegister",
		"register with a Registry of your own"},
	{"github.com/prometheus/client_golang/prometheus", "Register",
		"register with a Registry of your own"},
	{"github.com/prometheus/client_golang/prometheus", "DefaultRegisterer",
		"register with a Registry of your own"},
}

var bannedEverywhere = []ban{
	{"math/rand", "", "use math/rand/v2 with a seed that the caller chooses"},
	{"math/rand/v2", "*", "use rand.New(rand.NewPCG(seed, ...)) with a seed that the caller " +
		"chooses, so that runs repeat"},
	{"reflect", "DeepEqual",
		"compare with ==, slices, maps or bytes; in tests with go-cmp, which says what differs"},
}

func TestCalls(t *testing.T) {
	check(t, "calls", calls,
		folder{path: "flow", pure: true},
		folder{path: "kernel"},
	)
}

// calls finds what is used of other packages and should not be, goroutines in pure packages,
// undocumented panics, and errors that lose their cause.
func calls(r *repository) []finding {
	var findings []finding
	seen := map[finding]bool{} // a file is in its package and in the package's test variant
	for _, p := range ownPackages(r) {
		for _, file := range p.Syntax {
			if ast.IsGenerated(file) {
				continue
			}
			for _, f := range newCallScan(r, p, file).run(file) {
				if !seen[f] {
					seen[f] = true
					findings = append(findings, f)
				}
			}
		}
	}
	return findings
}

// ownPackages are the packages of the module, with their test variants, without the test binaries.
func ownPackages(r *repository) []*packages.Package {
	var own []*packages.Package
	for _, p := range r.packages {
		if p.Module != nil && p.Module.Main && !strings.HasSuffix(p.ID, ".test") {
			own = append(own, p)
		}
	}
	return own
}

type callScan struct {
	p        *packages.Package
	name     string // of the file
	test     bool
	pure     bool
	bans     []ban
	findings []finding
}

func newCallScan(r *repository, p *packages.Package, file *ast.File) *callScan {
	name := r.relative(p.Fset.Position(file.Pos()).Filename)
	s := &callScan{p: p, name: name, test: isTest(name)}
	s.pure = !s.test && r.isPure(path.Dir(name))
	if s.pure {
		s.bans = append(s.bans, bannedInPure...)
	}
	if !s.test {
		s.bans = append(s.bans, bannedInProduct...)
	}
	s.bans = append(s.bans, bannedEverywhere...)
	return s
}

func (s *callScan) run(file *ast.File) []finding {
	for _, decl := range file.Decls {
		function, _ := decl.(*ast.FuncDecl)
		ast.Inspect(decl, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.Ident:
				s.use(node)
			case *ast.GoStmt:
				s.goroutine(node)
			case *ast.CallExpr:
				s.panics(node, function)
				s.wraps(node)
			}
			return true
		})
	}
	return s.findings
}

func (s *callScan) find(at ast.Node, what, mend string) {
	s.findings = append(s.findings, finding{s.name, s.p.Fset.Position(at.Pos()).Line, what, mend})
}

func (s *callScan) use(ident *ast.Ident) {
	object := s.p.TypesInfo.Uses[ident]
	if object == nil || object.Pkg() == nil || object.Pkg() == s.p.Types ||
		object.Parent() != object.Pkg().Scope() {
		return
	}
	pkg := object.Pkg().Path()
	for _, b := range s.bans {
		if b.covers(pkg, object) {
			s.find(ident, "use of "+pkg+"."+object.Name(), b.mend)
			return
		}
	}
	if pkg == "os" && object.Name() == "Exit" && s.p.Name != "main" && !s.test {
		s.find(ident, "use of os.Exit outside a command", "return an error")
	}
}

func (b ban) covers(pkg string, object types.Object) bool {
	if below := strings.HasSuffix(b.pkg, "/") && strings.HasPrefix(pkg, b.pkg); !below &&
		pkg != b.pkg {
		return false
	}
	if b.name == "*" {
		_, function := object.(*types.Func)
		return function && !strings.HasPrefix(object.Name(), "New")
	}
	return b.name == "" || b.name == object.Name()
}

func (s *callScan) goroutine(statement *ast.GoStmt) {
	if s.pure {
		s.find(statement, "a goroutine in a pure package",
			"the caller decides what runs beside what")
	}
}

// panics allows a panic only where the comment of the function says so: it is for mistakes of the
// programmer.
func (s *callScan) panics(call *ast.CallExpr, function *ast.FuncDecl) {
	ident, ok := call.Fun.(*ast.Ident)
	if !ok || s.test {
		return
	}
	if builtin, ok := s.p.TypesInfo.Uses[ident].(*types.Builtin); !ok || builtin.Name() != "panic" {
		return
	}
	if function == nil || !strings.Contains(function.Doc.Text(), "panic") {
		s.find(call, "a panic that no comment mentions",
			"return an error; if only a mistake in the program can get here, say in the "+
				"function's comment when it panics")
	}
}

// wraps wants %w for each error that goes into fmt.Errorf, so that errors.Is and errors.As find it.
func (s *callScan) wraps(call *ast.CallExpr) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.test {
		return
	}
	function, ok := s.p.TypesInfo.Uses[selector.Sel].(*types.Func)
	if !ok || function.FullName() != "fmt.Errorf" {
		return
	}
	format := s.p.TypesInfo.Types[call.Args[0]].Value
	if format == nil || format.Kind() != constant.String {
		return
	}
	errors := 0
	for _, arg := range call.Args[1:] {
		if types.Implements(s.p.TypesInfo.TypeOf(arg), errorInterface) {
			errors++
		}
	}
	if wrapped := strings.Count(constant.StringVal(format), "%w"); wrapped < errors {
		s.find(call, fmt.Sprintf("%d of %d errors wrapped in fmt.Errorf", wrapped, errors),
			"use %w for an error")
	}
}

var errorInterface = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
