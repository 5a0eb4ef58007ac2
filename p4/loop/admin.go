package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/planner/control"
)

// adminHeader is the header that a command has to carry. A browser sends it for a page of another site only after a
// preflight request.
const adminHeader = "Hopscope-Control"

const (
	adminWait  = 5 * time.Second
	mostAuthor = 100
)

// verbs are the commands that can be sent, by path.
var verbs = map[string]control.Verb{
	"pause": control.Pause, "resume": control.Resume, "approve": control.Approve, "reject": control.Reject,
	"rollback": control.Rollback, "dry-run": control.DryRun, "wet-run": control.WetRun,
}

// Reply is the answer to a command.
type Reply struct {
	Obeyed bool   `json:"obeyed"`
	Error  string `json:"error,omitempty"`
	Status Status `json:"status"`
}

// Admin serves the questions and commands of an operator. Metrics may be nil.
func Admin(l *Loop, j *Journal, metrics http.Handler) http.Handler {
	return admin(j, metrics, l.Status, l.Command)
}

// AdminStandby is [Admin] for a control that steers nothing at present: it is healthy and not ready, and refuses
// commands. Each request calls by for the reason.
func AdminStandby(by func(context.Context) Standby, j *Journal, metrics http.Handler) http.Handler {
	status := func(ctx context.Context) (Status, error) {
		s := by(ctx)
		return Status{Status: control.Status{Phase: StandingBy}, Time: time.Now().UnixNano(), Standby: &s}, nil
	}
	return admin(j, metrics, status, func(ctx context.Context, _ control.Command) (string, error) { return by(ctx).Why, nil })
}

func admin(j *Journal, metrics http.Handler, status func(context.Context) (Status, error), do func(context.Context, control.Command) (string, error)) http.Handler {
	ask := func(r *http.Request) (Status, error) {
		ctx, cancel := context.WithTimeout(r.Context(), adminWait)
		defer cancel()
		return status(ctx)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		s, err := ask(r)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case s.Standby != nil:
			http.Error(w, s.Standby.Why, http.StatusServiceUnavailable)
		case s.InForce == 0:
			http.Error(w, "no plan is in force yet", http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, "ready")
		}
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		s, err := ask(r)
		answer(w, &s, err)
	})
	mux.HandleFunc("GET /log", func(w http.ResponseWriter, r *http.Request) {
		n := 100
		if text := r.URL.Query().Get("n"); text != "" {
			var err error
			if n, err = strconv.Atoi(text); err != nil || n < 1 || n > lastRecords {
				http.Error(w, fmt.Sprintf("n is a number from 1 to %d", lastRecords), http.StatusBadRequest)
				return
			}
		}
		list := j.Last(n)
		if list == nil {
			list = []control.Record{}
		}
		answer(w, list, nil)
	})
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	for path, verb := range verbs {
		mux.HandleFunc("POST /"+path, func(w http.ResponseWriter, r *http.Request) {
			c, ok := command(w, r, verb)
			if !ok {
				return
			}
			ctx, cancel := context.WithTimeout(r.Context(), adminWait)
			defer cancel()
			why, err := do(ctx, c)
			if err != nil {
				answer(w, nil, err)
				return
			}
			s, err := status(ctx)
			answer(w, &Reply{Obeyed: why == "", Error: why, Status: s}, err)
		})
	}
	return guard(mux)
}

// command reads the command of a request; if it makes no sense it answers so.
func command(w http.ResponseWriter, r *http.Request, verb control.Verb) (c control.Command, ok bool) {
	if r.Header.Get(adminHeader) == "" {
		http.Error(w, "a command carries the header "+adminHeader+": the name of its author", http.StatusForbidden)
		return c, false
	}
	c = control.Command{Verb: verb, Author: printable(r.Header.Get(adminHeader))}
	if text := r.URL.Query().Get("epoch"); text != "" {
		epoch, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			http.Error(w, "epoch is a number", http.StatusBadRequest)
			return c, false
		}
		c.Epoch = uint32(epoch)
	}
	return c, true
}

// printable removes unprintable characters from the name of an operator, line ends included, and truncates it.
func printable(author string) string {
	author = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, author)
	return strings.ToValidUTF8(author[:min(len(author), mostAuthor)], "") // not within a character
}

func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that hung up gets no answer
}

// guard answers those alone that mean this machine: a name that some page made to point here is another host.
func guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !peer.Loopback(host) {
			http.Error(w, "this is not asked by that name", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// CheckAdmin returns why an address is refused for listening: it is neither a loopback address nor "unix:PATH".
func CheckAdmin(address string) error {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if path == "" {
			return errors.New("unix: names no socket")
		}
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is neither HOST:PORT nor unix:PATH", address)
	}
	if !peer.Loopback(host) {
		return fmt.Errorf("%s: commands have no password, so that only this machine may send them: a loopback address, or unix:PATH", address)
	}
	return nil
}

// ListenAdmin listens at an address that CheckAdmin takes. A socket of the file system is for its owner alone; one that no process
// serves any more is replaced.
func ListenAdmin(address string) (net.Listener, error) {
	if err := CheckAdmin(address); err != nil {
		return nil, err
	}
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return net.Listen("tcp", address)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			return nil, errors.Join(fmt.Errorf("%s is served by another program", path), c.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return listenPrivate(path)
}

// listenPrivate listens at a socket that its owner alone can open. Until its permissions are set, the socket lies in a
// directory that no other user may enter. Before that change it has the permissions that the umask leaves.
func listenPrivate(path string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s") // short, since the path of a socket must be
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	inside := filepath.Join(dir, "s")
	l, err := net.Listen("unix", inside)
	if err != nil {
		return nil, err
	}
	u := l.(*net.UnixListener)
	u.SetUnlinkOnClose(false) // it would be another name
	if err = os.Chmod(inside, 0o600); err == nil {
		err = os.Rename(inside, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &privateSocket{u, path}, nil
}

// privateSocket takes its name away when it is closed.
type privateSocket struct {
	*net.UnixListener
	path string
}

func (l *privateSocket) Close() error {
	err := l.UnixListener.Close()
	if err == nil {
		_ = os.Remove(l.path) // another process may have done so
	}
	return err
}
