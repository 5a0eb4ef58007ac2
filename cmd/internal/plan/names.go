package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/hopscope/hopscope/cmd/internal/cli"
)

// nameList is a list in a flag: names with commas between, or a file with one a line.
type nameList struct {
	flag, file string // file is empty where the names are in the flag
	names      []string
	lines      []int // of a file
}

// maxNames bounds a file of names.
const maxNames = 64 << 20

// readNames reads the names in the value of a flag. A value that is no possible or existing file name is a list; a
// directory is no file. In files, empty lines and those that begin with # are left out.
func readNames(flag, spec string) (list nameList, err error) {
	list.flag = flag
	at, err := os.Stat(spec)
	if err != nil && !errors.Is(err, fs.ErrPermission) || err == nil && at.IsDir() {
		for name := range strings.SplitSeq(spec, ",") {
			if name = strings.TrimSpace(name); name == "" {
				return list, cli.Usagef("--%s %.80q: a name is empty, and there is no such file", flag, spec)
			}
			list.names = append(list.names, name)
		}
		return list, nil
	}
	b, err := cli.ReadFile(spec, maxNames)
	if err != nil {
		return list, fmt.Errorf("--%s: %w", flag, err)
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

// wrong adds to err the place of the name with number k.
func (l *nameList) wrong(k int, err error) error {
	if l.file == "" {
		return cli.Usagef("--%s: %w", l.flag, err)
	}
	return fmt.Errorf("%s %s:%d: %w", l.flag, l.file, l.lines[k], err)
}
