package rate

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// runIsolated runs this program again, with the same arguments, in network and mount namespaces of its own and on the
// sender's CPU.
func runIsolated(senderCPU int) error {
	if os.Geteuid() != 0 {
		return errors.New("needs root: only root may turn on receive packet steering, even in a namespace of its own")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), roleEnv+"="+roleSender)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if err := startOn(cmd, senderCPU); err != nil {
		return fmt.Errorf("start in a network namespace: %w", err)
	}
	return cmd.Wait()
}

// startOn starts cmd with all its threads on one CPU. The calling goroutine stays on its thread, so that the child is
// not killed because its parent's thread ended.
func startOn(cmd *exec.Cmd, cpu int) error {
	runtime.LockOSThread()
	var old, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return fmt.Errorf("read the CPU affinity: %w", err)
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("bind to CPU %d: %w", cpu, err)
	}
	return errors.Join(cmd.Start(), unix.SchedSetaffinity(0, &old))
}

// bringUpLoopback brings up the loopback interface of the network of this thread. It then takes frames for its address
// that do not come from this machine's stack, which is what [frameSender] makes.
func bringUpLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	for name, value := range map[string]string{"route_localnet": "1", "rp_filter": "0"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/conf/lo/"+name, []byte(value), 0); err != nil {
			return fmt.Errorf("take frames for the loopback address: %w", err)
		}
	}
	return nil
}

// prepareNetwork brings up the loopback interface of a fresh namespace and has the kernel receive on one CPU.
func prepareNetwork(receiverCPU int) error {
	if err := bringUpLoopback(); err != nil {
		return err
	}
	// A fresh sysfs shows this namespace's interfaces. Nothing of it may reach the mounts of others.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount sysfs: %w", err)
	}
	const rps = "/sys/class/net/lo/queues/rx-0/rps_cpus"
	if err := os.WriteFile(rps, []byte(strconv.FormatUint(1<<receiverCPU, 16)), 0); err != nil {
		return fmt.Errorf("turn on receive packet steering: %w", err)
	}
	return nil
}
