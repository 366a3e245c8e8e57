// A double of the NVIDIA driver's library, for the tests: GPU i uses i + 2
// joules between two questions, and everything else it tells follows from i.
#include <stdio.h>
#include <string.h>

static unsigned long long used[16];
static unsigned int number(void *d) { return (unsigned long long *)d - used; }

int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int *n) { *n = COUNT; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **d) { *d = &used[i]; return 0; }
int nvmlDeviceGetName(void *d, char *text, unsigned int size) {
	snprintf(text, size, "GPU %u", number(d));
	return 0;
}
#ifndef OLD
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj) {
	unsigned long long *mine = d;
	*mine += 1000 * (2 + number(d));
	*mj = *mine;
	return ENERGY;
}
#endif
#ifndef PLAIN
int nvmlDeviceGetUUID(void *d, char *text, unsigned int size) {
	snprintf(text, size, "GPU-%u0-uuid", number(d));
	return 0;
}
int nvmlDeviceGetUtilizationRates(void *d, unsigned int *pair) {
	pair[0] = 80 + 10 * number(d);
	pair[1] = 30;
	return 0;
}
int nvmlDeviceGetMemoryInfo(void *d, unsigned long long *three) {
	three[0] = 100;
	three[1] = 40;
	three[2] = 60 + number(d);
	return 0;
}
int nvmlDeviceGetPowerUsage(void *d, unsigned int *mw) { *mw = 150500 + number(d); return POWER; }
int nvmlDeviceGetClockInfo(void *d, int clock, unsigned int *mhz) { *mhz = 1000 * clock + number(d); return 0; }
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned int *c) { *c = 50 + sensor + 2 * number(d); return 0; }
int nvmlDeviceGetPcieThroughput(void *d, int sent, unsigned int *kib) { *kib = sent == 0 ? 10 : 20; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *reasons) {
	*reasons = number(d) == 0 ? 0x1 : 0x4 | 0x20; // idle; power cap and heat
	return 0;
}

// What is set: watts from 100 to 300, and clocks up to 2000 MHz.
static unsigned int limit[16] = {250000, 250000}, highest[16] = {2000, 2000};

int nvmlDeviceGetPowerManagementLimit(void *d, unsigned int *mw) { *mw = limit[number(d)]; return 0; }
int nvmlDeviceGetPowerManagementDefaultLimit(void *d, unsigned int *mw) { *mw = 250000; return 0; }
int nvmlDeviceGetPowerManagementLimitConstraints(void *d, unsigned int *low, unsigned int *high) {
	*low = 100000 + number(d);
	*high = 300000;
	return 0;
}
int nvmlDeviceSetPowerManagementLimit(void *d, unsigned int mw) {
	if (mw < 100000 || mw > 300000) return 2;
	limit[number(d)] = mw;
	return 0;
}
int nvmlDeviceGetMaxClockInfo(void *d, int clock, unsigned int *mhz) { *mhz = clock == 1 ? highest[number(d)] : 0; return 0; }
int nvmlDeviceSetGpuLockedClocks(void *d, unsigned int low, unsigned int high) {
	if (low != 0) return 2;
	highest[number(d)] = high; // a real one still tells 2000: so the test sees what arrived
	return 0;
}
int nvmlDeviceResetGpuLockedClocks(void *d) { highest[number(d)] = 2000; return 0; }

// Who is there: GPU 0 has nobody, GPU i has processes 100 * i to 100 * i + SHARE
// - 1. The first of them keeps it 40 percent busy in one sample and 70 in the others,
// the other processes do not run, and the last one's memory is not told.
struct process { unsigned int pid; unsigned long long bytes; unsigned int instance, compute; };
struct sample { unsigned int pid; unsigned long long at; unsigned int cores, memory, encoder, decoder; };

int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned int *n, struct process *list) {
	unsigned int there = number(d) == 0 ? 0 : SHARE, room = *n;
	*n = there;
	if (room < there) return 7;
	for (unsigned int i = 0; i < there; i++) {
		list[i].pid = 100 * number(d) + i;
		list[i].bytes = i + 1 == there ? ~0ULL : 1000 * (i + 1);
	}
	return PROCESSES;
}
int nvmlDeviceGetProcessUtilization(void *d, struct sample *list, unsigned int *n, unsigned long long since) {
	unsigned int there = number(d) == 0 ? 0 : SHARE, room = *n;
	if (SAMPLES) return SAMPLES;
	if (there == 0) return 6;
	there += 2;
	*n = there;
	if (!list || room < there) return 7;
	for (unsigned int i = 0; i < there; i++) {
		list[i].pid = 100 * number(d); // all of one process: their mean counts
		list[i].at = since + 1000 + i;
		list[i].cores = i == 0 ? 40 : 70;
	}
	list[there - 2].at = since; // real drivers return old and absurd samples as well
	list[there - 1].cores = 4000000;
	return 0;
}

// The structures are spelled as in nvml.h, so that ours are compared with those.
typedef struct { unsigned int environment; unsigned int ccFeature; unsigned int devToolsMode; } state;
typedef struct {
	unsigned int certChainSize; unsigned int attestationCertChainSize;
	unsigned char certChain[0x1000]; unsigned char attestationCertChain[0x1400];
} certificate;
typedef struct {
	unsigned int isCecAttestationReportPresent; unsigned int attestationReportSize; unsigned int cecAttestationReportSize;
	unsigned char nonce[0x20]; unsigned char attestationReport[0x2000]; unsigned char cecAttestationReport[0x1000];
} report;

#ifndef CONFIDENTIAL
#define CONFIDENTIAL 1
#endif
int nvmlSystemGetConfComputeState(state *s) { s->environment = 2; s->ccFeature = CONFIDENTIAL; s->devToolsMode = CONFIDENTIAL == 2; return 0; }
int nvmlDeviceGetConfComputeGpuCertificate(void *d, certificate *c) {
	c->attestationCertChainSize = sprintf((char *)c->attestationCertChain, "chain %u", number(d)) + 1;
	return number(d) == 1 && CONFIDENTIAL == 2 ? 3 : 0;
}
int nvmlDeviceGetConfComputeGpuAttestationReport(void *d, report *r) {
	r->attestationReportSize = sizeof r->attestationReport; // all that fits, which ends with the nonce
	memcpy(r->attestationReport + sizeof r->attestationReport - sizeof r->nonce, r->nonce, sizeof r->nonce);
	r->attestationReport[0] = number(d);
	return 0;
}
#endif
