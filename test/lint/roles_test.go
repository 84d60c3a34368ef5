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

// rolesKnown is of how many roles a file may know the folders: its own, and another one that it
// works with. A file that knows more is a list of roles beside the registry.
const rolesKnown = 2

// rolesInRooms finds files that know more roles than their own. The registry is the function kinds,
// with one call of KindOf for each role, which gets what opens the room in the role's folder: its
// file may know all.
func rolesInRooms(r *repository) []finding {
	var findings []finding
	for _, registry := range r.sources {
		list := registered(registry.file)
		if len(list) == 0 || registry.isTest() {
			continue
		}
		for _, s := range r.sources {
			if s.isTest() || s.name == registry.name {
				continue
			}
			if named, at := rolesNamed(s, list); len(named) > rolesKnown {
				findings = append(findings, finding{s.name, s.line(at),
					fmt.Sprintf("roles %s are named outside their rooms",
						strings.Join(named, ", ")),
					"loop over the rooms, with a method of theirs or a hook"})
			}
		}
	}
	return findings
}

// registered reads the folders of roles from the registry, nil if the file has none.
func registered(file *ast.File) (list []string) {
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
			kindOf, isKind := call.Fun.(*ast.SelectorExpr)
			open, isOpen := call.Args[1].(*ast.SelectorExpr)
			if isKind && isOpen && kindOf.Sel.Name == "KindOf" {
				list = append(list, importOf(file, open.X.(*ast.Ident).Name))
			}
			return true
		})
	}
	return list
}

// importOf is the path of the package that a file knows by its folder's name.
func importOf(file *ast.File, name string) string {
	for _, spec := range file.Imports {
		if imported := strings.Trim(spec.Path.Value, `"`); path.Base(imported) == name {
			return imported
		}
	}
	return name
}

// rolesNamed lists the roles whose folders a file is in or knows, and where it knows the first one
// too many.
func rolesNamed(s source, list []string) (named []string, at ast.Node) {
	for _, role := range list {
		if strings.HasSuffix(role, "/"+s.dir()) {
			named = append(named, path.Base(role))
		}
	}
	for _, spec := range s.file.Imports {
		if imported := strings.Trim(spec.Path.Value, `"`); slices.Contains(list, imported) {
			if named = append(named, path.Base(imported)); len(named) == rolesKnown+1 {
				at = spec
			}
		}
	}
	return named, at
}
