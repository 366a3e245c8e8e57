// A double of the NVIDIA driver's library, for the tests: GPU i uses i + 2
// joules between two questions.
#include <stdio.h>

static unsigned long long used[16];

int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int *n) { *n = COUNT; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **d) { *d = &used[i]; return 0; }
int nvmlDeviceGetName(void *d, char *text, unsigned int size) {
	snprintf(text, size, "GPU %d", (int)((unsigned long long *)d - used));
	return 0;
}
#ifndef OLD
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj) {
	unsigned long long *mine = d;
	*mine += 1000 * (2 + (mine - used));
	*mj = *mine;
	return ENERGY;
}
#endif
