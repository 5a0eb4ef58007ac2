package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/hopscope/hopscope/cmd/internal/cli"
)

// nameList is what a flag lists: names with commas between, or a file with one a line.
type nameList struct {
	flag, file string // file is empty where the names are in the flag
	names      []string
	lines      []int // of a file
}

// maxNames bounds a file of names.
const maxNames = 64 << 20

// readNames reads the names that a flag gives: what is no file, or too long for the name of one, is a list. In files, empty lines and those that begin with # are left out.
func readNames(flag, spec string) (list nameList, err error) {
	list.flag = flag
	b, err := cli.ReadFile(spec, maxNames)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG) {
		for name := range strings.SplitSeq(spec, ",") {
			if name = strings.TrimSpace(name); name == "" {
				return list, cli.Usagef("--%s %.80q: a name is empty, and there is no such file", flag, spec)
			}
			list.names = append(list.names, name)
		}
		return list, nil
	}
	if err != nil {
		return list, err
	}
	list.file = spec
	line := 0
	for text := range strings.Lines(string(b)) {
		line++
		if name := strings.TrimSpace(text); name != "" && !strings.HasPrefix(name, "#") {
			list.names, list.lines = append(list.names, name), append(list.lines, line)
		}
	}
	return list, nil
}

// wrong says where the name with number k is, which err is about.
func (l *nameList) wrong(k int, err error) error {
	if l.file == "" {
		return cli.Usagef("--%s: %w", l.flag, err)
	}
	return fmt.Errorf("%s %s:%d: %w", l.flag, l.file, l.lines[k], err)
}
