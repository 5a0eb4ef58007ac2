package hugepage

import "syscall"

const madvHugepage = 14 // MADV_HUGEPAGE, which package syscall lacks on some architectures

// advise asks for huge pages. Kernels without them refuse, and nothing is lost.
func advise(b []byte) { _ = syscall.Madvise(b, madvHugepage) }
