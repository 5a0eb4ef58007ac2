package loop

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestWiresNothing holds that suspects are measured as they ship: the benches make none of the parts that package
// steer puts together for "hopscope control". Troubles in bytes.go are drawn, with no network that reports them, and
// need the hysteresis of suspects alone.
func TestWiresNothing(t *testing.T) {
	wired := map[string]string{"inference/suspicion.New": "loop/bytes.go", "inference/suspicion.NewIncidence": "loop/bytes.go", "p4/loop.NewRounds": ""}
	const module = "github.com/hopscope/hopscope/"
	used := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		imports := map[string]string{}
		for _, i := range f.Imports {
			if pkg, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); ours {
				name := pkg[strings.LastIndexByte(pkg, '/')+1:]
				if i.Name != nil {
					name = i.Name.Name
				}
				imports[name] = pkg
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" {
				made := imports[x.Name] + "." + s.Sel.Name
				used[made] = true
				if except, is := wired[made]; is && !(except != "" && strings.HasSuffix(filepath.ToSlash(path), "/"+except)) {
					t.Errorf("%s uses %s: it is to measure what package p4/steer makes of it", path, made)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{"p4/steer.New", "inference/suspicion.New"} { // the test finds what there is
		if !used[made] {
			t.Errorf("no bench uses %s", made)
		}
	}
}
