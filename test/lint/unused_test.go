package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

func TestNothingIsUnused(t *testing.T) { check(t, "unused", unused) }

// unused finds declarations that the product does not reach: not from a command or an
// initialisation, and not from the tests of another package. What only its own package's tests use
// is as dead as what nothing uses, and staticcheck (U1000) finds neither if the name is exported.
func unused(r *repository) []finding {
	g := newUseGraph(r)
	g.walk(g.roots)
	var findings []finding
	for _, name := range g.dead() {
		at := g.declared[name]
		short := name[strings.LastIndexByte(name, '/')+1:]
		findings = append(findings, finding{at.path, at.line,
			short + " is used by nothing but its own package's tests",
			"delete it, or use it"})
	}
	return findings
}

// A useGraph knows which declaration mentions which. It calls package-level objects package.Name
// and methods package.Type.Name, so that an object is the same whether it was seen in source, in
// export data, or in a package's test variant.
type useGraph struct {
	declared   map[string]place
	mentions   map[string][]string
	roots      []string
	types      map[string]*types.Named       // those of the module
	interfaces map[string][]*types.Interface // all there are, by the names of their methods
	reached    map[string]bool
}

type place struct {
	path string
	line int
}

func newUseGraph(r *repository) *useGraph {
	g := &useGraph{
		declared: map[string]place{}, mentions: map[string][]string{},
		types:      map[string]*types.Named{},
		interfaces: map[string][]*types.Interface{}, reached: map[string]bool{},
	}
	g.addInterface(types.Universe.Lookup("error").Type())
	seen := map[*types.Package]bool{}
	for _, p := range r.packages {
		g.addInterfaces(p.Types, seen)
		for _, instance := range p.TypesInfo.Instances {
			g.addInterface(instance.Type)
		}
	}
	for _, p := range ownPackages(r) {
		for _, file := range p.Syntax {
			name := r.relative(p.Fset.Position(file.Pos()).Filename)
			switch {
			case isTest(name):
				g.addTest(p, file)
			case p.ForTest == "": // in a test variant, the file is there a second time
				g.addFile(p, file, name)
			}
		}
	}
	for _, s := range r.sources {
		if r.inOtherModule(s.name) && !s.isTest() {
			g.addOther(s)
		}
	}
	return g
}

// inOtherModule reports whether a file is of a module further down, whose packages are not loaded.
func (r *repository) inOtherModule(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if r.has(dir + "/go.mod") {
			return true
		}
	}
	return false
}

// addOther takes what a file of another module mentions of this one as roots.
func (g *useGraph) addOther(s source) {
	imported := map[string]string{}
	for _, spec := range s.file.Imports {
		of := strings.Trim(spec.Path.Value, `"`)
		name := path.Base(of)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = of
	}
	ast.Inspect(s.file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if of, ok := selector.X.(*ast.Ident); ok && imported[of.Name] != "" {
				g.roots = append(g.roots, imported[of.Name]+"."+selector.Sel.Name)
			}
		}
		return true
	})
}

// addInterfaces collects the named interfaces of a package and of all that it imports.
func (g *useGraph) addInterfaces(p *types.Package, seen map[*types.Package]bool) {
	if p == nil || seen[p] {
		return
	}
	seen[p] = true
	for _, name := range p.Scope().Names() {
		if object, ok := p.Scope().Lookup(name).(*types.TypeName); ok {
			g.addInterface(object.Type())
		}
	}
	for _, imported := range p.Imports() {
		g.addInterfaces(imported, seen)
	}
}

func (g *useGraph) addInterface(t types.Type) {
	i, ok := t.Underlying().(*types.Interface)
	if !ok {
		return
	}
	for method := range i.Methods() {
		g.interfaces[method.Name()] = append(g.interfaces[method.Name()], i)
	}
}

// addTest takes what a test mentions of other packages as roots.
func (g *useGraph) addTest(p *packages.Package, file *ast.File) {
	own := strings.TrimSuffix(p.PkgPath, "_test")
	for _, object := range mentioned(p, file) {
		if object.Pkg() != nil && object.Pkg().Path() != own {
			g.roots = append(g.roots, nameOf(object))
		}
	}
}

// addFile adds the declarations of a file. Those of a command are roots: what it does not use
// itself is staticcheck's business. So are generated ones, which nobody can take out.
func (g *useGraph) addFile(p *packages.Package, file *ast.File, name string) {
	root := p.Name == "main" || ast.IsGenerated(file)
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GenDecl:
			g.addEnumeration(p, node)
		case *ast.FuncDecl:
			g.add(p, node, name, root || node.Recv == nil && node.Name.Name == "init", node.Name)
		case *ast.TypeSpec:
			g.add(p, node, name, root, node.Name)
		case *ast.ValueSpec:
			g.add(p, node, name, root || node.Names[0].Name == "_", node.Names...)
		case *ast.InterfaceType:
			g.addInterface(p.TypesInfo.TypeOf(node))
		}
		return true
	})
}

// add adds one declaration with its names, if they are on the package level. Methods are.
func (g *useGraph) add(p *packages.Package, decl ast.Node, file string, root bool,
	idents ...*ast.Ident) {
	var names []string
	for _, object := range mentioned(p, decl) {
		names = append(names, nameOf(object))
	}
	if root {
		g.roots = append(g.roots, names...)
	}
	for _, ident := range idents {
		object := p.TypesInfo.Defs[ident]
		name := nameOf(object)
		if root || name == "" || ident.Name == "_" {
			continue
		}
		g.declared[name] = place{file, p.Fset.Position(ident.Pos()).Line}
		g.mentions[name] = append(g.mentions[name], names...)
		if named, ok := object.Type().(*types.Named); ok && object == named.Obj() {
			g.types[name] = named
		}
	}
}

// addEnumeration lets constants that are counted up mention each other and their type: who uses one
// needs the others to stand where they stand.
func (g *useGraph) addEnumeration(p *packages.Package, decl *ast.GenDecl) {
	var constants, all []string
	counted := false
	for _, spec := range decl.Specs {
		spec, ok := spec.(*ast.ValueSpec)
		if !ok || decl.Tok != token.CONST {
			return
		}
		counted = counted || spec.Values == nil
		for _, ident := range spec.Names {
			object := p.TypesInfo.Defs[ident]
			constants = append(constants, nameOf(object))
			all = append(all, nameOf(object), nameOfType(object.Type()))
		}
	}
	if counted {
		for _, name := range constants {
			g.mentions[name] = append(g.mentions[name], all...)
		}
	}
}

// mentioned lists the objects that the identifiers below a node stand for.
func mentioned(p *packages.Package, node ast.Node) []types.Object {
	var objects []types.Object
	ast.Inspect(node, func(node ast.Node) bool {
		if ident, ok := node.(*ast.Ident); ok && p.TypesInfo.Uses[ident] != nil {
			objects = append(objects, p.TypesInfo.Uses[ident])
		}
		return true
	})
	return objects
}

// nameOf is empty for what is neither on the package level nor a method of a named type.
func nameOf(object types.Object) string {
	if object == nil || object.Pkg() == nil {
		return ""
	}
	if function, ok := object.(*types.Func); ok && function.Signature().Recv() != nil {
		owner := nameOfType(function.Origin().Signature().Recv().Type())
		if owner == "" {
			return ""
		}
		return owner + "." + object.Name()
	}
	if object.Parent() != object.Pkg().Scope() {
		return ""
	}
	return object.Pkg().Path() + "." + object.Name()
}

func nameOfType(t types.Type) string {
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	named, ok := t.(*types.Named)
	if !ok {
		return ""
	}
	return nameOf(named.Origin().Obj())
}

// walk marks what can be reached from some declarations.
func (g *useGraph) walk(open []string) {
	open = slices.Clone(open)
	for len(open) > 0 {
		name := open[len(open)-1]
		open = open[:len(open)-1]
		if name == "" || g.reached[name] {
			continue
		}
		g.reached[name] = true
		open = append(open, g.mentions[name]...)
		if named := g.types[name]; named != nil {
			open = append(open, g.methodsForInterfaces(named)...)
		}
	}
}

// dead lists what was not reached, but of what hangs together only the ends to pull: declarations
// that no other dead one mentions, or, of those that mention each other in a circle, the first.
func (g *useGraph) dead() []string {
	mentioned := map[string]bool{}
	for name := range g.declared {
		if g.reached[name] {
			continue
		}
		for _, other := range g.mentions[name] {
			if other != name && !strings.HasPrefix(name,
				other+".") { // a method always mentions its type
				mentioned[other] = true
			}
		}
	}
	var ends []string
	for _, circles := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(g.declared)) {
			if !g.reached[name] && (circles || !mentioned[name]) {
				ends = append(ends, name)
				g.walk(append(g.methodsOf(name), name))
			}
		}
	}
	return ends
}

// methodsOf lists the methods of a type, which go with it.
func (g *useGraph) methodsOf(name string) []string {
	var names []string
	if named := g.types[name]; named != nil {
		for method := range named.Methods() {
			names = append(names, nameOf(method))
		}
	}
	return names
}

// calledByErrors are the methods that the package errors looks for without an interface of a name.
var calledByErrors = map[string]bool{"Is": true, "As": true, "Unwrap": true}

// methodsForInterfaces lists the methods that a type has to have for some interface: they are
// called through it.
func (g *useGraph) methodsForInterfaces(named *types.Named) []string {
	pointer := types.NewPointer(named)
	var names []string
	for selection := range types.NewMethodSet(pointer).Methods() {
		method := selection.Obj().(*types.Func)
		if calledByErrors[method.Name()] {
			names = append(names, nameOf(method))
		}
		for _, i := range g.interfaces[method.Name()] {
			// A generic type cannot be asked before it is instantiated; the name of the method has
			// to do.
			if named.TypeParams() != nil || types.Implements(pointer, i) {
				names = append(names, nameOf(method))
				break
			}
		}
	}
	return names
}
