package sketches

import "syscall"

const madvHugepage = 14 // MADV_HUGEPAGE, which package syscall lacks on some architectures

// adviseHuge asks for huge pages. Kernels without them refuse, and nothing is lost.
func adviseHuge(b []byte) { _ = syscall.Madvise(b, madvHugepage) }
