//go:build !unix

package foreign

import "os"

func gone(*os.Process) bool { return true }
