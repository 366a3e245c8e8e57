//go:build linux && cgo

package profiler

// The NVIDIA driver's library is opened when the machine has it, and each
// function is looked up by name. NVIDIA's own Go binding leaves the functions
// to the linker instead: a program with it does not even start where symbols
// are bound at once (hardened tool chains, LD_BIND_NOW) and no driver is.

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

typedef struct {
	void *handle;
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned int *);
	int (*device)(unsigned int, void **);
	int (*name)(void *, char *, unsigned int);
	int (*energy)(void *, unsigned long long *);
} nvml_library;

// nvml_open returns 0, or the number of the step that failed.
static int nvml_open(nvml_library *l, const char *path) {
	l->handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!l->handle) return 1;
	*(void **)&l->init = dlsym(l->handle, "nvmlInit_v2");
	*(void **)&l->shutdown = dlsym(l->handle, "nvmlShutdown");
	*(void **)&l->count = dlsym(l->handle, "nvmlDeviceGetCount_v2");
	*(void **)&l->device = dlsym(l->handle, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&l->name = dlsym(l->handle, "nvmlDeviceGetName");
	*(void **)&l->energy = dlsym(l->handle, "nvmlDeviceGetTotalEnergyConsumption");
	if (l->init && l->shutdown && l->count && l->device && l->name && l->energy) return 0;
	dlclose(l->handle);
	return 2;
}

static int nvml_init(nvml_library *l) { return l->init(); }
static int nvml_shutdown(nvml_library *l) { int code = l->shutdown(); dlclose(l->handle); return code; }
static void nvml_forget(nvml_library *l) { dlclose(l->handle); }
static int nvml_count(nvml_library *l, unsigned int *n) { return l->count(n); }
static int nvml_device(nvml_library *l, unsigned int i, void **d) { return l->device(i, d); }
static int nvml_name(nvml_library *l, void *d, char *text, unsigned int size) { return l->name(d, text, size); }
static int nvml_energy(nvml_library *l, void *d, unsigned long long *mj) { return l->energy(d, mj); }
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// nvmlName is found where the dynamic linker looks.
const nvmlName = "libnvidia-ml.so.1"

// nvidiaGPUs reads the energy counters of the GPUs of NVIDIA.
type nvidiaGPUs struct {
	library *C.nvml_library
	devices []unsafe.Pointer
	labels  []string
}

func openGPUs() (gpuCounter, error) {
	gpu, err := openNVML(nvmlName)
	if err != nil {
		return nil, err // not a typed nil
	}
	return gpu, nil
}

func openNVML(path string) (*nvidiaGPUs, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	library := (*C.nvml_library)(C.calloc(1, C.sizeof_nvml_library))
	switch C.nvml_open(library, name) {
	case 1:
		C.free(unsafe.Pointer(library))
		return nil, fmt.Errorf("%s was not found: no NVIDIA driver is installed here", path)
	case 2:
		C.free(unsafe.Pointer(library))
		return nil, errors.New("the NVIDIA driver is too old to tell energy")
	}
	if code := C.nvml_init(library); code != 0 {
		C.nvml_forget(library)
		C.free(unsafe.Pointer(library))
		return nil, nvmlFault(code)
	}
	g := &nvidiaGPUs{library: library}
	if err := g.list(); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *nvidiaGPUs) list() error {
	var total C.uint
	if code := C.nvml_count(g.library, &total); code != 0 {
		return nvmlFault(code)
	}
	for i := range total {
		var device unsafe.Pointer
		if code := C.nvml_device(g.library, i, &device); code != 0 {
			return nvmlFault(code)
		}
		var label [96]C.char
		if code := C.nvml_name(g.library, device, &label[0], C.uint(len(label))); code != 0 {
			return nvmlFault(code)
		}
		g.devices, g.labels = append(g.devices, device), append(g.labels, C.GoString(&label[0]))
	}
	if total == 0 {
		return errors.New("the NVIDIA driver runs, but this machine has no GPU of NVIDIA")
	}
	return nil
}

// nvmlFault words the codes a user can act on (nvml.h, nvmlReturn_t).
func nvmlFault(code C.int) error {
	switch code {
	case 3:
		return errors.New("this GPU does not support it")
	case 4:
		return errors.New("this user may not talk to the NVIDIA driver")
	case 9:
		return errors.New("the NVIDIA driver is installed but not loaded")
	case 18:
		return errors.New("the NVIDIA driver was updated and not reloaded since")
	default:
		return fmt.Errorf("the NVIDIA driver does not answer (NVML error %d)", int(code))
	}
}

func (g *nvidiaGPUs) joules() (float64, error) {
	sum := 0.0
	for i, device := range g.devices {
		var millijoules C.ulonglong
		if code := C.nvml_energy(g.library, device, &millijoules); code != 0 {
			return 0, fmt.Errorf("GPU %d (%s): %w", i, g.labels[i], nvmlFault(code))
		}
		sum += float64(millijoules) / 1000
	}
	return sum, nil
}

func (g *nvidiaGPUs) names() []string { return g.labels }

func (g *nvidiaGPUs) close() {
	C.nvml_shutdown(g.library)
	C.free(unsafe.Pointer(g.library))
}
