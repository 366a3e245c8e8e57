package tandem_test

import (
	"go/ast"
	"os"
	"slices"
	"strings"
	"testing"
)

// Limits of size. Each table below holds what was above its limit when the limit
// was set. An entry may only shrink: who makes the thing smaller lowers the number,
// and deletes the entry once the limit holds.
const (
	mostLines            = 2500 // of a package, without its tests
	mostMethods          = 40   // of a type
	mostInterfaceMethods = 12   // of an interface, with those that it embeds
)

var largePackages = map[string]int{}

var largeTypes = map[string]int{}

var largeInterfaces = map[string]int{}

// topLevel are the folders that a reader finds first.
var topLevel = []string{"bench", "budget", "clients", "cmd", "deploy", "docs", "e2e", "examples", "inference_emu", "internal", "profiler", "scripts", "similarity", "store", "study", "trial", "web", "workers"}

func TestPackagesStaySmall(t *testing.T) {
	lines := map[string]int{}
	for _, one := range sources(t) {
		if !one.test {
			lines[one.folder] += one.lines
		}
	}
	hold(t, "lines", lines, largePackages, mostLines)
}

// linkedLines are those of the packages that cmd/tandem links, without tests. The
// number may only shrink: who adds lines takes others away.
const linkedLines = 129051

func TestTheProgramOnlyShrinks(t *testing.T) {
	lines, imported := map[string]int{}, map[string][]string{}
	for _, one := range sources(t) {
		if one.test {
			continue
		}
		lines[one.folder] += one.lines
		for _, path := range imports(one.file) {
			if ours, is := strings.CutPrefix(path, module); is {
				imported[one.folder] = append(imported[one.folder], ours)
			}
		}
	}
	linked, count := []string{"cmd/tandem"}, 0
	for at := 0; at < len(linked); at++ {
		count += lines[linked[at]]
		for _, folder := range imported[linked[at]] {
			if !slices.Contains(linked, folder) {
				linked = append(linked, folder)
			}
		}
	}
	if count > linkedLines {
		t.Errorf("the program has %d lines and may only shrink from %d: take something out of it", count, linkedLines)
	} else {
		t.Logf("the program has %d lines", count)
	}
}

func TestTypesStaySmall(t *testing.T) {
	methods := map[string]int{}
	for _, one := range sources(t) {
		for _, declaration := range one.file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv != nil && !one.test {
				methods[one.folder+"."+receiver(function.Recv.List[0].Type)]++
			}
		}
	}
	hold(t, "methods", methods, largeTypes, mostMethods)
}

// receiver is the name of the type that a method belongs to.
func receiver(expression ast.Expr) string {
	switch of := expression.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return "?"
}

func TestInterfacesStaySmall(t *testing.T) {
	declared := map[string]*ast.InterfaceType{}
	for _, one := range sources(t) {
		if one.test {
			continue
		}
		ast.Inspect(one.file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok {
				if of, ok := spec.Type.(*ast.InterfaceType); ok {
					declared[one.folder+"."+spec.Name.Name] = of
				}
			}
			return true
		})
	}
	methods := map[string]int{}
	for name, of := range declared {
		folder, _, _ := strings.Cut(name, ".")
		methods[name] = countMethods(folder, of, declared)
	}
	hold(t, "methods", methods, largeInterfaces, mostInterfaceMethods)
}

// countMethods counts those of the interfaces of the same package that it embeds, too.
func countMethods(folder string, of *ast.InterfaceType, declared map[string]*ast.InterfaceType) int {
	count := 0
	for _, field := range of.Methods.List {
		if len(field.Names) > 0 {
			count += len(field.Names)
		} else if name, ok := field.Type.(*ast.Ident); ok && declared[folder+"."+name.Name] != nil {
			count += countMethods(folder, declared[folder+"."+name.Name], declared)
		}
	}
	return count
}

// hold reports what is above the limit and above its entry in the table, and each
// entry that is larger than it has to be.
func hold(t *testing.T, unit string, have, table map[string]int, limit int) {
	t.Helper()
	for name, count := range have {
		if allowed, excepted := table[name]; count > max(limit, allowed) {
			if excepted {
				t.Errorf("%s has %d %s and may only shrink from %d: move something out of it", name, count, unit, allowed)
			} else {
				t.Errorf("%s has %d %s, at most %d: split it", name, count, unit, limit)
			}
		}
	}
	for name, allowed := range table {
		if count := have[name]; count <= limit {
			t.Errorf("%s has %d %s and keeps the limit of %d: delete its entry", name, count, unit, limit)
		} else if count < allowed {
			t.Errorf("%s has %d %s: lower its entry from %d", name, count, unit, allowed)
		}
	}
}

func TestTheTopLevelIsKnown(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		built := entry.Name() == "bin" || entry.Name() == "dist" // by make build and scripts/release
		if entry.IsDir() && !built && !strings.HasPrefix(entry.Name(), ".") && !slices.Contains(topLevel, entry.Name()) {
			t.Errorf("the folder %s is not among those of the top level: put it into one of them", entry.Name())
		}
	}
	for _, name := range topLevel {
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			t.Errorf("the folder %s is gone: take it from the list", name)
		}
	}
}
