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

#define NO_FUNCTION 13 // nvmlNoFunction

typedef struct {
	void *handle;
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned int *);
	int (*device)(unsigned int, void **);
	int (*name)(void *, char *, unsigned int);
	int (*energy)(void *, unsigned long long *);
	// These may be missing from older drivers.
	int (*uuid)(void *, char *, unsigned int);
	int (*utilization)(void *, unsigned int *);
	int (*memory)(void *, unsigned long long *);
	int (*power)(void *, unsigned int *);
	int (*clock)(void *, int, unsigned int *);
	int (*temperature)(void *, int, unsigned int *);
	int (*pcie)(void *, int, unsigned int *);
	int (*throttled)(void *, unsigned long long *);
	int (*limit)(void *, unsigned int *);
	int (*usual)(void *, unsigned int *);
	int (*bounds)(void *, unsigned int *, unsigned int *);
	int (*set_limit)(void *, unsigned int);
	int (*highest)(void *, int, unsigned int *);
	int (*lock)(void *, unsigned int, unsigned int);
	int (*unlock)(void *);
	int (*processes)(void *, unsigned int *, void *);
	int (*samples)(void *, void *, unsigned int *, unsigned long long);
	int (*confidential)(void *);
	int (*certificate)(void *, void *);
	int (*report)(void *, void *);
} nvml_library;

// nvml_state is nvmlConfComputeSystemState_t, nvml_chain nvmlConfComputeGpuCertificate_t,
// nvml_report nvmlConfComputeGpuAttestationReport_t.
typedef struct { unsigned int environment, on, tools; } nvml_state;
typedef struct { unsigned int other_size, size; unsigned char other[0x1000], chain[0x1400]; } nvml_chain;
typedef struct { unsigned int has_other, size, other_size; unsigned char nonce[0x20], report[0x2000], other[0x1000]; } nvml_report;

// nvml_process is nvmlProcessInfo_v2_t, nvml_sample nvmlProcessUtilizationSample_t.
typedef struct { unsigned int pid; unsigned long long bytes; unsigned int instance, compute; } nvml_process;
typedef struct { unsigned int pid; unsigned long long at; unsigned int cores, memory, encoder, decoder; } nvml_sample;

// nvml_reading has the metrics in the order of gpuMetrics.
enum { CORES, CONTROLLER, MEMORY, POWER, CORE_CLOCK, MEMORY_CLOCK, TEMPERATURE, RECEIVE, SEND, THROTTLED, METRICS };
typedef struct {
	unsigned long long value[METRICS];
	int code[METRICS];
} nvml_reading;

#define NOT_FOUND -1
#define TOO_OLD -2

// nvml_open returns 0, one of these two, or NVML's code.
static int nvml_open(nvml_library *l, const char *path) {
	l->handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!l->handle) return NOT_FOUND;
	*(void **)&l->init = dlsym(l->handle, "nvmlInit_v2");
	*(void **)&l->shutdown = dlsym(l->handle, "nvmlShutdown");
	*(void **)&l->count = dlsym(l->handle, "nvmlDeviceGetCount_v2");
	*(void **)&l->device = dlsym(l->handle, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&l->name = dlsym(l->handle, "nvmlDeviceGetName");
	*(void **)&l->energy = dlsym(l->handle, "nvmlDeviceGetTotalEnergyConsumption");
	*(void **)&l->uuid = dlsym(l->handle, "nvmlDeviceGetUUID");
	*(void **)&l->utilization = dlsym(l->handle, "nvmlDeviceGetUtilizationRates");
	*(void **)&l->memory = dlsym(l->handle, "nvmlDeviceGetMemoryInfo");
	*(void **)&l->power = dlsym(l->handle, "nvmlDeviceGetPowerUsage");
	*(void **)&l->clock = dlsym(l->handle, "nvmlDeviceGetClockInfo");
	*(void **)&l->temperature = dlsym(l->handle, "nvmlDeviceGetTemperature");
	*(void **)&l->pcie = dlsym(l->handle, "nvmlDeviceGetPcieThroughput");
	*(void **)&l->throttled = dlsym(l->handle, "nvmlDeviceGetCurrentClocksThrottleReasons");
	if (!l->throttled) *(void **)&l->throttled = dlsym(l->handle, "nvmlDeviceGetCurrentClocksEventReasons");
	*(void **)&l->limit = dlsym(l->handle, "nvmlDeviceGetPowerManagementLimit");
	*(void **)&l->usual = dlsym(l->handle, "nvmlDeviceGetPowerManagementDefaultLimit");
	*(void **)&l->bounds = dlsym(l->handle, "nvmlDeviceGetPowerManagementLimitConstraints");
	*(void **)&l->set_limit = dlsym(l->handle, "nvmlDeviceSetPowerManagementLimit");
	*(void **)&l->highest = dlsym(l->handle, "nvmlDeviceGetMaxClockInfo");
	*(void **)&l->lock = dlsym(l->handle, "nvmlDeviceSetGpuLockedClocks");
	*(void **)&l->unlock = dlsym(l->handle, "nvmlDeviceResetGpuLockedClocks");
	*(void **)&l->processes = dlsym(l->handle, "nvmlDeviceGetComputeRunningProcesses_v3");
	if (!l->processes) *(void **)&l->processes = dlsym(l->handle, "nvmlDeviceGetComputeRunningProcesses_v2");
	*(void **)&l->samples = dlsym(l->handle, "nvmlDeviceGetProcessUtilization");
	*(void **)&l->confidential = dlsym(l->handle, "nvmlSystemGetConfComputeState");
	*(void **)&l->certificate = dlsym(l->handle, "nvmlDeviceGetConfComputeGpuCertificate");
	*(void **)&l->report = dlsym(l->handle, "nvmlDeviceGetConfComputeGpuAttestationReport");
	int code = l->init && l->shutdown && l->count && l->device && l->name && l->energy ? l->init() : TOO_OLD;
	if (code) dlclose(l->handle);
	return code;
}

static int nvml_shutdown(nvml_library *l) { int code = l->shutdown(); dlclose(l->handle); return code; }
static int nvml_count(nvml_library *l, unsigned int *n) { return l->count(n); }
static int nvml_device(nvml_library *l, unsigned int i, void **d) { return l->device(i, d); }
static int nvml_name(nvml_library *l, void *d, char *text, unsigned int size) { return l->name(d, text, size); }
static int nvml_energy(nvml_library *l, void *d, unsigned long long *mj) { return l->energy(d, mj); }
static int nvml_uuid(nvml_library *l, void *d, char *text, unsigned int size) { return l->uuid ? l->uuid(d, text, size) : NO_FUNCTION; }

static int nvml_limit(nvml_library *l, void *d, unsigned int *mw) { return l->limit ? l->limit(d, mw) : NO_FUNCTION; }
static int nvml_usual(nvml_library *l, void *d, unsigned int *mw) { return l->usual ? l->usual(d, mw) : NO_FUNCTION; }
static int nvml_bounds(nvml_library *l, void *d, unsigned int *low, unsigned int *high) { return l->bounds ? l->bounds(d, low, high) : NO_FUNCTION; }
static int nvml_set_limit(nvml_library *l, void *d, unsigned int mw) { return l->set_limit ? l->set_limit(d, mw) : NO_FUNCTION; }
static int nvml_highest(nvml_library *l, void *d, unsigned int *mhz) { return l->highest ? l->highest(d, 1, mhz) : NO_FUNCTION; } // NVML_CLOCK_SM
static int nvml_lock(nvml_library *l, void *d, unsigned int low, unsigned int high) { return l->lock ? l->lock(d, low, high) : NO_FUNCTION; }
static int nvml_unlock(nvml_library *l, void *d) { return l->unlock ? l->unlock(d) : NO_FUNCTION; }
static int nvml_memory(nvml_library *l, void *d, unsigned long long *three) { return l->memory ? l->memory(d, three) : NO_FUNCTION; }
static int nvml_utilization(nvml_library *l, void *d, unsigned int *pair) { return l->utilization ? l->utilization(d, pair) : NO_FUNCTION; }
static int nvml_processes(nvml_library *l, void *d, unsigned int *n, nvml_process *list) { return l->processes ? l->processes(d, n, list) : NO_FUNCTION; }
static int nvml_samples(nvml_library *l, void *d, nvml_sample *list, unsigned int *n, unsigned long long since) { return l->samples ? l->samples(d, list, n, since) : NO_FUNCTION; }
static int nvml_confidential(nvml_library *l, nvml_state *s) { return l->confidential ? l->confidential(s) : NO_FUNCTION; }
static int nvml_certificate(nvml_library *l, void *d, nvml_chain *c) { return l->certificate ? l->certificate(d, c) : NO_FUNCTION; }
static int nvml_attest(nvml_library *l, void *d, nvml_report *r) { return l->report ? l->report(d, r) : NO_FUNCTION; }

static void nvml_read(nvml_library *l, void *d, nvml_reading *r) {
	unsigned int pair[2] = {0, 0}, one = 0;
	unsigned long long memory[3] = {0, 0, 0}, reasons = 0; // total, free, used
	r->code[CORES] = r->code[CONTROLLER] = l->utilization ? l->utilization(d, pair) : NO_FUNCTION;
	r->value[CORES] = pair[0];
	r->value[CONTROLLER] = pair[1];
	r->code[MEMORY] = l->memory ? l->memory(d, memory) : NO_FUNCTION;
	r->value[MEMORY] = memory[2];
	r->code[POWER] = l->power ? l->power(d, &one) : NO_FUNCTION;
	r->value[POWER] = one;
	r->code[CORE_CLOCK] = l->clock ? l->clock(d, 1, &one) : NO_FUNCTION; // NVML_CLOCK_SM
	r->value[CORE_CLOCK] = one;
	r->code[MEMORY_CLOCK] = l->clock ? l->clock(d, 2, &one) : NO_FUNCTION; // NVML_CLOCK_MEM
	r->value[MEMORY_CLOCK] = one;
	r->code[TEMPERATURE] = l->temperature ? l->temperature(d, 0, &one) : NO_FUNCTION; // NVML_TEMPERATURE_GPU
	r->value[TEMPERATURE] = one;
	r->code[SEND] = l->pcie ? l->pcie(d, 0, &one) : NO_FUNCTION; // NVML_PCIE_UTIL_TX_BYTES
	r->value[SEND] = one;
	r->code[RECEIVE] = l->pcie ? l->pcie(d, 1, &one) : NO_FUNCTION; // NVML_PCIE_UTIL_RX_BYTES
	r->value[RECEIVE] = one;
	r->code[THROTTLED] = l->throttled ? l->throttled(d, &reasons) : NO_FUNCTION;
	r->value[THROTTLED] = reasons;
}
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"time"
	"unsafe"
)

const nvmlName = "libnvidia-ml.so.1"

// nvidiaGPUs are the GPUs of NVIDIA.
type nvidiaGPUs struct {
	library *C.nvml_library
	handles []unsafe.Pointer
	known   []gpuDevice
}

func openGPUs() (gpuReader, error) {
	// Container runtimes and NixOS put it where the dynamic linker does not look.
	gpu, err := openNVML(nvmlName, "/usr/local/nvidia/lib64/"+nvmlName, "/run/opengl-driver/lib/"+nvmlName)
	if err != nil {
		return nil, err // not a typed nil
	}
	return gpu, nil
}

// openNVML opens the first of the paths at which there is a library.
func openNVML(paths ...string) (*nvidiaGPUs, error) {
	g := &nvidiaGPUs{library: (*C.nvml_library)(C.calloc(1, C.sizeof_nvml_library))}
	code := C.int(C.NOT_FOUND)
	for _, path := range paths {
		if code == C.NOT_FOUND {
			name := C.CString(path)
			code = C.nvml_open(g.library, name)
			C.free(unsafe.Pointer(name))
		}
	}
	if code != 0 {
		C.free(unsafe.Pointer(g.library))
	}
	switch code {
	case 0:
	case C.NOT_FOUND:
		return nil, fmt.Errorf("%s was not found: no NVIDIA driver is installed here", nvmlName)
	case C.TOO_OLD:
		return nil, errors.New("the NVIDIA driver is too old to tell energy")
	default:
		return nil, nvmlFault(int(code))
	}
	if err := g.list(); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *nvidiaGPUs) list() error {
	var total C.uint
	if code := C.nvml_count(g.library, &total); code != 0 {
		return nvmlFault(int(code))
	}
	for i := range total {
		var device unsafe.Pointer
		if code := C.nvml_device(g.library, i, &device); code != 0 {
			return nvmlFault(int(code))
		}
		var model, uuid [96]C.char
		if code := C.nvml_name(g.library, device, &model[0], C.uint(len(model))); code != 0 {
			return nvmlFault(int(code))
		}
		C.nvml_uuid(g.library, device, &uuid[0], C.uint(len(uuid))) // without one it has none to be chosen by
		g.handles = append(g.handles, device)
		g.known = append(g.known, gpuDevice{C.GoString(&model[0]), C.GoString(&uuid[0])})
	}
	if total == 0 {
		return errors.New("the NVIDIA driver runs, but this machine has no GPU of NVIDIA")
	}
	return nil
}

func (g *nvidiaGPUs) devices() []gpuDevice { return g.known }

func (g *nvidiaGPUs) joules(device int) (float64, error) {
	var millijoules C.ulonglong
	code := C.nvml_energy(g.library, g.handles[device], &millijoules)
	return float64(millijoules) / 1000, nvmlFault(int(code))
}

func (g *nvidiaGPUs) read(device int) (raw rawGPU) {
	var reading C.nvml_reading
	C.nvml_read(g.library, g.handles[device], &reading)
	for i := range raw.value {
		raw.value[i], raw.code[i] = uint64(reading.value[i]), int(reading.code[i])
	}
	return raw
}

func (g *nvidiaGPUs) powerLimit(device int) (uint, error) {
	var milliwatts C.uint
	code := C.nvml_limit(g.library, g.handles[device], &milliwatts)
	return uint(milliwatts), nvmlFault(int(code))
}

// defaultPowerLimit is what the limit is unless somebody sets it.
func (g *nvidiaGPUs) defaultPowerLimit(device int) (uint, error) {
	var milliwatts C.uint
	code := C.nvml_usual(g.library, g.handles[device], &milliwatts)
	return uint(milliwatts), nvmlFault(int(code))
}

func (g *nvidiaGPUs) powerBounds(device int) (low, high uint, err error) {
	var least, most C.uint
	code := C.nvml_bounds(g.library, g.handles[device], &least, &most)
	return uint(least), uint(most), nvmlFault(int(code))
}

func (g *nvidiaGPUs) setPowerLimit(device int, milliwatts uint) error {
	return nvmlFault(int(C.nvml_set_limit(g.library, g.handles[device], C.uint(milliwatts))))
}

func (g *nvidiaGPUs) highestClock(device int) (uint, error) {
	var mhz C.uint
	code := C.nvml_highest(g.library, g.handles[device], &mhz)
	return uint(mhz), nvmlFault(int(code))
}

func (g *nvidiaGPUs) lockClocks(device int, low, high uint) error {
	return nvmlFault(int(C.nvml_lock(g.library, g.handles[device], C.uint(low), C.uint(high))))
}

func (g *nvidiaGPUs) unlockClocks(device int) error {
	return nvmlFault(int(C.nvml_unlock(g.library, g.handles[device])))
}

// nvmlNotFound is NVML's code for that there is nothing to tell, and nvmlTooSmall
// for that there is more to tell than there was room for.
const (
	nvmlNotFound = 6
	nvmlTooSmall = 7
)

func (g *nvidiaGPUs) memory(device int) (total, used int64, err error) {
	var three [3]C.ulonglong // total, free, used
	code := C.nvml_memory(g.library, g.handles[device], &three[0])
	return int64(three[0]), int64(three[2]), nvmlFault(int(code))
}

func (g *nvidiaGPUs) utilization(device int) (float64, error) {
	var percent [2]C.uint // of cores and of the memory's controller
	code := C.nvml_utilization(g.library, g.handles[device], &percent[0])
	return min(1, float64(percent[0])/100), nvmlFault(int(code))
}

// listed asks for a list until there was room for all of it.
func listed[T any](room int, ask func(list *T, count *C.uint) C.int) ([]T, C.int) {
	for tries, count := 0, C.uint(0); ; tries++ {
		list := make([]T, max(room, 2*int(count)))
		count = C.uint(len(list))
		if code := ask(&list[0], &count); code != nvmlTooSmall || tries == 3 {
			return list[:min(len(list), int(count))], code
		}
	}
}

func (g *nvidiaGPUs) processes(device int) ([]GPUProcess, error) {
	list, code := listed(64, func(list *C.nvml_process, count *C.uint) C.int {
		return C.nvml_processes(g.library, g.handles[device], count, list)
	})
	if code != 0 {
		return nil, nvmlFault(int(code))
	}
	var found []GPUProcess
	for _, one := range list {
		bytes := int64(-1)
		if one.bytes != ^C.ulonglong(0) { // which NVML says of what it cannot tell
			bytes = int64(one.bytes)
		}
		found = append(found, GPUProcess{PID: int(one.pid), MemoryBytes: bytes})
	}
	return found, nil
}

func (g *nvidiaGPUs) utilizations(device int, since time.Time) (map[int]float64, error) {
	list, code := listed(128, func(list *C.nvml_sample, count *C.uint) C.int {
		return C.nvml_samples(g.library, g.handles[device], list, count, C.ulonglong(since.UnixMicro()))
	})
	switch code {
	case 0:
	case nvmlNotFound:
		return nil, nil // nothing ran
	default:
		return nil, nvmlFault(int(code))
	}
	sums, samples := map[int]float64{}, map[int]float64{}
	for _, one := range list {
		// Drivers also return samples from before that time, and above 100 percent.
		if uint64(one.at) <= uint64(since.UnixMicro()) || one.cores > 100 {
			continue
		}
		sums[int(one.pid)] += float64(one.cores) / 100
		samples[int(one.pid)]++
	}
	for pid := range sums {
		sums[pid] /= samples[pid]
	}
	return sums, nil
}

func (g *nvidiaGPUs) confidential() (on, tools bool, err error) {
	var state C.nvml_state
	code := C.nvml_confidential(g.library, &state)
	return state.on != 0, state.tools != 0, nvmlFault(int(code))
}

func (g *nvidiaGPUs) attest(device int, nonce [32]byte) (report, chain []byte, err error) {
	asked, certificates := C.nvml_report{}, C.nvml_chain{}
	for i, one := range nonce {
		asked.nonce[i] = C.uchar(one)
	}
	code := C.nvml_attest(g.library, g.handles[device], &asked)
	if code == 0 {
		code = C.nvml_certificate(g.library, g.handles[device], &certificates)
	}
	if code != 0 {
		return nil, nil, nvmlFault(int(code))
	}
	report = C.GoBytes(unsafe.Pointer(&asked.report), C.int(min(int(asked.size), len(asked.report))))
	chain = C.GoBytes(unsafe.Pointer(&certificates.chain), C.int(min(int(certificates.size), len(certificates.chain))))
	return report, bytes.TrimRight(chain, "\x00"), nil
}

func (g *nvidiaGPUs) close() {
	C.nvml_shutdown(g.library)
	C.free(unsafe.Pointer(g.library))
}
