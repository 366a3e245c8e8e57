// A driver's library for the end-to-end tests and for scripts/gpu-check --cpu: GPUs
// of 16 GiB, two unless -DGPUS says else, on which the processes compute that say so
// in files of the folder TANDEM_TEST_GPUS, named by their number: "GPU PERCENT MIB".
// Each draws 200 watts, whatever happens. Its power limit is the same in all
// processes: it is kept in TANDEM_TEST_GPUS as well.
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef GPUS
#define GPUS 2
#endif
static char devices[GPUS];
static unsigned int number(void *d) { return (char *)d - devices; }

struct process { unsigned int pid; unsigned long long bytes; unsigned int instance, compute; };
struct sample { unsigned int pid; unsigned long long at; unsigned int cores, memory, encoder, decoder; };
struct there { unsigned int pid, percent; unsigned long long bytes; };

static unsigned int look(void *d, struct there *list, unsigned int most) {
	const char *folder = getenv("TANDEM_TEST_GPUS");
	DIR *all = folder ? opendir(folder) : NULL;
	unsigned int found = 0;
	for (struct dirent *one; all && (one = readdir(all)) && found < most;) {
		unsigned int pid = atoi(one->d_name), gpu, percent, mib;
		char path[512];
		snprintf(path, sizeof path, "%s/%s", folder, one->d_name);
		FILE *file = pid > 0 && kill(pid, 0) == 0 ? fopen(path, "r") : NULL;
		if (!file) continue;
		if (fscanf(file, "%u %u %u", &gpu, &percent, &mib) == 3 && gpu == number(d))
			list[found++] = (struct there){pid, percent, (unsigned long long)mib << 20};
		fclose(file);
	}
	if (all) closedir(all);
	return found;
}

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int *n) { *n = GPUS; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **d) { *d = &devices[i]; return 0; }
int nvmlDeviceGetName(void *d, char *text, unsigned int size) { snprintf(text, size, "Double GPU"); return 0; }
int nvmlDeviceGetUUID(void *d, char *text, unsigned int size) { snprintf(text, size, "GPU-double-%u", number(d)); return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned int size) { snprintf(text, size, "0.0"); return 0; }

static unsigned long long milliseconds(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1000ULL * now.tv_sec + now.tv_nsec / 1000000;
}
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj) { *mj = 200 * milliseconds(); return 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned int *mw) { *mw = 200000; return 0; }
int nvmlDeviceGetClockInfo(void *d, int clock, unsigned int *mhz) { *mhz = 1500; return 0; }
int nvmlDeviceGetMaxClockInfo(void *d, int clock, unsigned int *mhz) { *mhz = 2000; return 0; }
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned int *c) { *c = 50; return 0; }
int nvmlDeviceGetPcieThroughput(void *d, int sent, unsigned int *kib) { *kib = 10; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *reasons) { *reasons = 1; return 0; }

static FILE *limit(const char *how) {
	char path[512];
	snprintf(path, sizeof path, "%s/limit", getenv("TANDEM_TEST_GPUS") ? getenv("TANDEM_TEST_GPUS") : "/nowhere");
	return fopen(path, how);
}
int nvmlDeviceGetPowerManagementDefaultLimit(void *d, unsigned int *mw) { *mw = 700000; return 0; }
int nvmlDeviceGetPowerManagementLimit(void *d, unsigned int *mw) {
	FILE *file = limit("r");
	*mw = 700000;
	if (file) {
		if (fscanf(file, "%u", mw) != 1) *mw = 700000;
		fclose(file);
	}
	return 0;
}
int nvmlDeviceGetPowerManagementLimitConstraints(void *d, unsigned int *low, unsigned int *high) {
	*low = 200000;
	*high = 700000;
	return 0;
}
int nvmlDeviceSetPowerManagementLimit(void *d, unsigned int mw) {
	FILE *file = limit("w");
	if (!file) return 4;
	fprintf(file, "%u", mw);
	fclose(file);
	return 0;
}
int nvmlDeviceSetGpuLockedClocks(void *d, unsigned int low, unsigned int high) { return 0; }
int nvmlDeviceResetGpuLockedClocks(void *d) { return 0; }
int nvmlDeviceGetUtilizationRates(void *d, unsigned int *pair) {
	struct there list[64];
	pair[0] = pair[1] = 0;
	for (unsigned int i = 0, n = look(d, list, 64); i < n; i++) pair[0] += list[i].percent;
	if (pair[0] > 100) pair[0] = 100;
	return 0;
}
int nvmlDeviceGetMemoryInfo(void *d, unsigned long long *three) {
	struct there list[64];
	three[0] = 16ULL << 30;
	three[2] = 0;
	for (unsigned int i = 0, n = look(d, list, 64); i < n; i++) three[2] += list[i].bytes;
	three[1] = three[0] - three[2];
	return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned int *n, struct process *list) {
	struct there there[64];
	unsigned int found = look(d, there, 64), room = *n;
	*n = found;
	if (room < found) return 7;
	for (unsigned int i = 0; i < found; i++) list[i] = (struct process){there[i].pid, there[i].bytes, 0, 0};
	return 0;
}
int nvmlDeviceGetProcessUtilization(void *d, struct sample *list, unsigned int *n, unsigned long long since) {
	struct there there[64];
	unsigned int found = look(d, there, 64), room = *n;
	if (found == 0) return 6;
	*n = found;
	if (!list || room < found) return 7;
	for (unsigned int i = 0; i < found; i++) list[i] = (struct sample){there[i].pid, since + 1, there[i].percent, 0, 0, 0};
	return 0;
}
