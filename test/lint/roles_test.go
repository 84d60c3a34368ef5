package lint

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestRolesAreNamedInTheirRooms(t *testing.T) { check(t, "roles", rolesInRooms) }

// rolesKnown is of how many roles a file may name the types or the places: its own, and another one
// that it works with. A file that names more is a list of roles beside the registry.
const rolesKnown = 2

// roleNames are the words for one role: its type, and the agent's place for the one that runs.
type roleNames struct{ kind, place string }

// rolesInRooms finds files that name more roles than their own. The registry is the function kinds,
// with one call of kindOf for each role: its file may name all.
func rolesInRooms(r *repository) []finding {
	var findings []finding
	for _, registry := range r.sources {
		list := registered(registry.file)
		if len(list) == 0 || registry.isTest() {
			continue
		}
		for _, s := range r.sources {
			if s.isTest() || s.name == registry.name || s.dir() != path.Dir(registry.name) {
				continue
			}
			if named, at := rolesNamed(s.file, list); len(named) > rolesKnown {
				findings = append(findings, finding{s.name, s.line(at),
					fmt.Sprintf("roles %s are named outside their rooms",
						strings.Join(named, ", ")),
					"loop over the roles that run, with a method of interface role"})
			}
		}
	}
	return findings
}

// registered reads the registry, nil if the file has none.
func registered(file *ast.File) (list []roleNames) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "kinds" || f.Recv != nil {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			name, isName := call.Fun.(*ast.Ident)
			slot, isFunc := call.Args[1].(*ast.FuncLit)
			if isName && isFunc && name.Name == "kindOf" {
				list = append(list, namesOf(slot))
			}
			return true
		})
	}
	return list
}

// namesOf reads a function that returns the address of an agent's place for a role.
func namesOf(slot *ast.FuncLit) (names roleNames) {
	ast.Inspect(slot.Type.Results, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names.kind = id.Name
		}
		return true
	})
	ast.Inspect(slot.Body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			names.place = s.Sel.Name
		}
		return true
	})
	return names
}

// rolesNamed lists the roles that a file names, and where it names the first one too many.
func rolesNamed(file *ast.File, list []roleNames) (named []string, at ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		var kind string
		switch n := n.(type) {
		case *ast.Ident:
			kind = n.Name
		case *ast.SelectorExpr:
			owner, isName := n.X.(*ast.Ident)
			i := slices.IndexFunc(list, func(r roleNames) bool { return r.place == n.Sel.Name })
			if i >= 0 && isName && owner.Name == "a" {
				kind = list[i].kind
			}
		}
		isRole := slices.ContainsFunc(list, func(r roleNames) bool { return r.kind == kind })
		if isRole && !slices.Contains(named, kind) {
			if named = append(named, kind); len(named) == rolesKnown+1 {
				at = n
			}
		}
		return true
	})
	return named, at
}
