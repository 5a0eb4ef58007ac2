package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
)

// inForce is the environment variable with the number of the mutant in force, 0 for none. The variable reachedFile has
// the name of a file. The numbers of the mutants whose place is reached are appended to it, as little-endian words of
// 32 bits.
const (
	inForce     = "HOPSCOPE_MUTANT"
	reachedFile = "HOPSCOPE_MUTANTS_REACHED"
)

// loaded is a package with its source and types.
type loaded struct {
	dir   string
	name  string
	fset  *token.FileSet
	files map[string]*ast.File // by path
	text  map[string][]byte
	info  *types.Info
}

// load reads and type-checks the package at a pattern such as ./sink/spool, without its tests.
func load(pattern string) (*loaded, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly,Name", pattern)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	p := &loaded{fset: token.NewFileSet(), files: map[string]*ast.File{}, text: map[string][]byte{}}
	exports := map[string]string{}
	var files []*ast.File
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var one struct {
			Dir, ImportPath, Export, Name string
			GoFiles                       []string
			DepOnly                       bool
		}
		if err := d.Decode(&one); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[one.ImportPath] = one.Export
		if one.DepOnly {
			continue
		}
		p.dir, p.name = one.Dir, one.Name
		for _, name := range one.GoFiles {
			path := filepath.Join(one.Dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			f, err := parser.ParseFile(p.fset, path, text, 0)
			if err != nil {
				return nil, err
			}
			p.files[path], p.text[path] = f, text
			files = append(files, f)
		}
	}
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	_, err = conf.Check(p.name, p.fset, files, p.info)
	return p, err
}

// mutate lists the mutants of the functions that the expression names, and returns the sources that hold all of them.
// Mutant k of the list is in force when the variable inForce is k+1.
func (p *loaded) mutate(funcs string) (labels []string, sources map[string][]byte) {
	named := regexp.MustCompile(`^(` + funcs + `)$`)
	sources = map[string][]byte{}
	paths := make([]string, 0, len(p.files))
	for path := range p.files {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		w := walker{loaded: p, first: len(labels)}
		for _, d := range p.files[path].Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && named.MatchString(funcName(f)) {
				w.block(f.Body.List, f.Type.Results == nil)
			}
		}
		if len(w.labels) == 0 {
			continue
		}
		labels = append(labels, w.labels...)
		sources[path] = w.apply(path)
	}
	if len(labels) > 0 {
		sources[filepath.Join(p.dir, "zz_mutants.go")] = fmt.Appendf(nil, schema, p.name, inForce, reachedFile, len(labels)+1)
	}
	return labels, sources
}

// schema is the source that selects a mutant. A heap beyond 2 GB ends the test: a mutant that appends without end is
// not to fill the memory.
const schema = `package %s

import (
	"encoding/binary"
	"os"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"time"
)

var (
	mutantInForce, _ = strconv.Atoi(os.Getenv(%q))
	mutantsTo, _     = os.OpenFile(os.Getenv(%q), os.O_WRONLY|os.O_APPEND, 0)
	mutantsReached   [%d]atomic.Bool
)

func init() {
	go func() {
		for heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}; ; time.Sleep(100 * time.Millisecond) {
			if metrics.Read(heap); heap[0].Value.Uint64() > 2<<30 {
				os.Exit(3)
			}
		}
	}()
}

func mutant(n int) bool {
	if mutantsTo != nil && !mutantsReached[n].Swap(true) {
		mutantsTo.Write(binary.LittleEndian.AppendUint32(nil, uint32(n)))
	}
	return n == mutantInForce
}
`

// funcName is the name of a function, and Type.name of a method.
func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if s, ok := t.(*ast.StarExpr); ok {
		t = s.X
	}
	if x, ok := t.(*ast.IndexExpr); ok {
		t = x.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// walker collects the mutants of one file as insertions. An outer node inserts before its inner ones, which keeps their
// brackets nested.
type walker struct {
	*loaded
	first   int
	labels  []string
	inserts []insert
}

type insert struct {
	at    token.Pos
	text  string
	order int // among insertions at one position: outer openings first, inner closings first
}

func (w *walker) mutant(n ast.Node, what string) int {
	at := w.fset.Position(n.Pos())
	w.labels = append(w.labels, fmt.Sprintf("%s:%d: %s", filepath.Base(at.Filename), at.Line, what))
	return w.first + len(w.labels)
}

func (w *walker) around(n ast.Node, before, after string) {
	k := len(w.inserts)
	w.inserts = append(w.inserts, insert{n.Pos(), before, k}, insert{n.End(), after, -k - 1})
}

func (w *walker) source(n ast.Node) string {
	var b bytes.Buffer
	printer.Fprint(&b, w.fset, n)
	return b.String()
}

// block mutates statements. The last statement of a function with results has to stay a terminating one, for which last
// is true.
func (w *walker) block(list []ast.Stmt, removable bool) {
	for i, s := range list {
		w.stmt(s, removable || i < len(list)-1)
	}
}

func (w *walker) stmt(s ast.Stmt, removable bool) {
	switch s := s.(type) {
	case nil:
	case *ast.BlockStmt:
		w.block(s.List, removable)
	case *ast.IfStmt:
		w.stmt(s.Init, false)
		w.condition(s.Cond)
		w.block(s.Body.List, removable)
		w.stmt(s.Else, removable)
	case *ast.ForStmt:
		w.stmt(s.Init, false)
		w.expr(s.Cond)
		w.block(s.Body.List, true)
	case *ast.RangeStmt:
		w.expr(s.X)
		w.block(s.Body.List, true)
	case *ast.SwitchStmt:
		w.stmt(s.Init, false)
		w.expr(s.Tag)
		for _, c := range s.Body.List {
			c := c.(*ast.CaseClause)
			if s.Tag == nil {
				for _, e := range c.List {
					w.condition(e)
				}
			}
			w.block(c.Body, removable)
		}
	case *ast.TypeSwitchStmt:
		for _, c := range s.Body.List {
			w.block(c.(*ast.CaseClause).Body, removable)
		}
	case *ast.ReturnStmt:
		if removable {
			w.remove(s)
		}
		for _, e := range s.Results {
			w.expr(e)
		}
	case *ast.BranchStmt:
		if removable && s.Tok != token.GOTO && s.Tok != token.FALLTHROUGH {
			w.remove(s)
		}
	case *ast.IncDecStmt:
		if removable {
			w.remove(s)
		}
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE && removable {
			w.remove(s)
		}
		for _, e := range s.Rhs {
			w.expr(e)
		}
	case *ast.ExprStmt:
		if removable {
			w.remove(s)
		}
		w.expr(s.X)
	case *ast.DeferStmt:
		w.expr(s.Call)
	case *ast.LabeledStmt:
		w.stmt(s.Stmt, false)
	}
}

// remove makes a mutant without the statement. The label shows the statement's first line.
func (w *walker) remove(s ast.Stmt) {
	if a, ok := s.(*ast.AssignStmt); ok && len(a.Lhs) == 1 {
		if id, ok := a.Lhs[0].(*ast.Ident); ok && id.Name == "_" {
			return
		}
	}
	n := w.mutant(s, "removed: "+firstLine(w.source(s)))
	w.around(s, fmt.Sprintf("if !mutant(%d) { ", n), " }")
}

func firstLine(s string) string {
	if i := bytes.IndexByte([]byte(s), '\n'); i >= 0 {
		return s[:i] + " ..."
	}
	return s
}

// condition makes a mutant with the condition negated, unless it is a comparison, which has mutants of its own.
func (w *walker) condition(e ast.Expr) {
	if w.constant(e) {
		return
	}
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); !ok || b.Op == token.LAND || b.Op == token.LOR {
		n := w.mutant(e, "negated: "+w.source(e))
		w.around(e, "((", fmt.Sprintf(") != mutant(%d))", n))
	}
	w.expr(e)
}

func (w *walker) constant(e ast.Expr) bool { return w.info.Types[e].Value != nil }

// swapped maps an operator to its mutation.
var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD,
}

// expr makes the mutants of operators. The text of a mutated operand has no mutants inside, since it stands there twice.
func (w *walker) expr(e ast.Expr) {
	if e == nil {
		return
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return !message(n)
		case *ast.FuncLit:
			w.block(n.Body.List, n.Type.Results == nil)
			return false
		case *ast.BinaryExpr:
			to, ok := swapped[n.Op]
			t := w.info.Types[n]
			if !ok || t.Value != nil {
				return true
			}
			if n.Op == token.ADD || n.Op == token.SUB {
				basic, ok := t.Type.Underlying().(*types.Basic)
				if !ok || basic.Info()&types.IsNumeric == 0 || hasCall(n) {
					return true
				}
				typ := types.TypeString(t.Type, func(p *types.Package) string {
					if p.Name() == w.name {
						return ""
					}
					return p.Name()
				})
				if basic.Kind() == types.UntypedInt || basic.Kind() == types.UntypedFloat {
					return true
				}
				id := w.mutant(n, fmt.Sprintf("%s for %s: %s", to, n.Op, w.source(n)))
				w.around(n, fmt.Sprintf("func() %s { if mutant(%d) { return %s %s (%s) }; return ", typ, id, w.source(n.X), to, w.source(n.Y)), " }()")
				return true
			}
			id := w.mutant(n, fmt.Sprintf("%s for %s: %s", to, n.Op, w.source(n)))
			w.around(n, fmt.Sprintf("(mutant(%d) && ((%s) %s (%s)) || !mutant(%d) && (", id, w.source(n.X), to, w.source(n.Y), id), "))")
		}
		return true
	})
}

// message reports whether a call makes a text for people: its arguments are not what a test has to pin.
func message(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	lit, ok := call.Args[0].(*ast.BasicLit)
	return ok && lit.Kind == token.STRING && (f.Sel.Name == "Errorf" || f.Sel.Name == "Sprintf" || f.Sel.Name == "Add")
}

func hasCall(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if _, ok := n.(*ast.CallExpr); ok {
			found = true
		}
		return !found
	})
	return found
}

// apply returns the file with all insertions.
func (w *walker) apply(path string) []byte {
	sort.SliceStable(w.inserts, func(i, k int) bool {
		a, b := w.inserts[i], w.inserts[k]
		if a.at != b.at {
			return a.at < b.at
		}
		return a.order < b.order
	})
	text := w.text[path]
	base := w.fset.File(w.files[path].Pos())
	var out bytes.Buffer
	last := 0
	for _, s := range w.inserts {
		at := base.Offset(s.at)
		out.Write(text[last:at])
		out.WriteString(s.text)
		last = at
	}
	out.Write(text[last:])
	return out.Bytes()
}
