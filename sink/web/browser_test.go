package web

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/hopscope/hopscope/internal/testkit"
)

var screenshots = flag.String("screenshots", "", "directory into which TestPage writes pictures of the page")

// findChromium names the browser, or fails the test with the way to get it.
func findChromium(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("CHROMIUM"); p != "" {
		return p
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	t.Fatal("the page is tested in a real browser and none was found; on Debian: apt-get install chromium\n" +
		"(or say where one is in the environment variable CHROMIUM)")
	return ""
}

// browser is a tab that remembers what it asked for and what it complained about.
type browser struct {
	ctx  context.Context
	host string // of the server, with port

	mu         sync.Mutex
	complaints []string
	foreign    []string
}

// startBrowser starts one that ends with the test, with a profile of its own.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	path := findChromium(t)
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 800), chromedp.Flag("disable-component-update", true))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // the sandbox refuses root
	}
	alloc, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return ctx
}

// openTab opens a tab that shares nothing with others, for pages of srv.
func openTab(t *testing.T, parent context.Context, srv *Server) *browser {
	t.Helper()
	u, err := url.Parse(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	tab, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &browser{ctx: tab, host: u.Host}
	if err := chromedp.Listen(tab, b.listen); err != nil {
		t.Fatal(err)
	}
	call(t, b, network.Enable, network.EnableParams{})
	call(t, b, log.Enable, cdp.Empty{})
	call(t, b, runtime.Enable, cdp.Empty{})
	b.size(t, 1280, 800)
	b.scheme(t, "dark")
	return b
}

// call runs a command of the browser's protocol.
func call[P, R any](t *testing.T, b *browser, cmd cdp.Command[P, R], params P) R {
	t.Helper()
	r, err := chromedp.Call(b.ctx, cmd, params)
	if err != nil {
		t.Fatalf("%s: %v", cmd.Method, err)
	}
	return r
}

func (b *browser) listen(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Host != b.host && u.Scheme != "data" && u.Scheme != "about" {
			b.foreign = append(b.foreign, e.Request.URL)
		}
	case *runtime.EventConsoleAPICalled:
		text := string(e.Type)
		for _, a := range e.Args {
			text += " " + string(a.Value) + a.Description
		}
		b.complaints = append(b.complaints, text)
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprintf("exception: %+v", *e.ExceptionDetails))
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	}
}

// check fails the test when the page complained or asked another host.
func (b *browser) check(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		t.Errorf("the browser's console says:\n%s", strings.Join(b.complaints, "\n"))
	}
	if len(b.foreign) > 0 {
		t.Errorf("the page asked another host than %s:\n%s", b.host, strings.Join(b.foreign, "\n"))
	}
}

func (b *browser) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// eval runs JavaScript in the page.
func eval[T any](t *testing.T, b *browser, js string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	return v
}

// wait waits until a JavaScript condition holds, also beyond the end of the page that it is first asked on.
func (b *browser) wait(t *testing.T, condition string) {
	t.Helper()
	var err error
	if testkit.Await(func() bool {
		var ok bool
		ok, err = chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+condition+")"))
		return ok
	}) {
		return
	}
	body, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText.slice(0, 1500)`)) // for the message
	b.check(t)
	t.Fatalf("waiting for %s: %v\npage: %s", condition, err, body)
}

// settle lets a time pass, and then waits for some frames, however long a busy machine takes to draw them.
func (b *browser) settle(t *testing.T, d time.Duration) {
	t.Helper()
	b.do(t, chromedp.Sleep(d))
	eval[bool](t, b, `(window.framesSeen = 0, (function count() { if (++window.framesSeen < 4) requestAnimationFrame(count); })(), true)`)
	b.wait(t, `window.framesSeen === 4`)
}

// scheme emulates the reader's colour scheme.
func (b *browser) scheme(t *testing.T, name string) {
	t.Helper()
	call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
}

// text is the text of an element as it is shown.
func (b *browser) text(t *testing.T, selector string) string {
	t.Helper()
	return eval[string](t, b, fmt.Sprintf(`(document.querySelector(%q)?.innerText ?? "(no such element)").replaceAll("\u202f", " ")`, selector))
}

// press sends keys to the page.
func (b *browser) press(t *testing.T, keys ...string) {
	t.Helper()
	for _, k := range keys {
		b.do(t, chromedp.KeyEvent(k))
	}
}

// size makes the window as large as that.
func (b *browser) size(t *testing.T, width, height int64) {
	t.Helper()
	b.do(t, chromedp.EmulateViewport(width, height))
}

// picture writes a screenshot into the directory of -screenshots.
func (b *browser) picture(t *testing.T, name string) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	b.settle(t, 500*time.Millisecond) // charts are drawn in the next frames
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// serve starts a server on a free port and stops it at the end of the test.
func serve(t *testing.T, cfg Config, deps Deps) *Server {
	t.Helper()
	cfg.Listen = "127.0.0.1:0"
	srv, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return srv
}
