/* GPUs that are not there: enough of CUDA's libraries for TensorFlow's GPU build to run on none.

   What is true over it is what TensorFlow itself does: where it places operations, what its
   allocator for GPUs holds, at what it is exhausted, in which order its executor starts
   operations, and what XLA's compiler for GPUs and ptxas make of a step.

   What is not: kernels do nothing, so values are whatever lay in the memory, and times mean
   nothing. Copies of more than MOST_COPIED bytes are not made. cuDNN and cuBLAS want no memory of
   their own, but for the first item of the settings that says otherwise. NCCL exchanges nothing.

   Settings, from the environment:
     STAND_IN_GIB       the size of each GPU; 79 by default
     STAND_IN_COUNT     how many there are; 1 by default
     STAND_IN_LEDGER    a file by which processes share their GPUs: what one has taken is not free
                        for the others. Without it a process has them for itself
     STAND_IN_COLD_MIB  what cuDNN wants as workspace for a second, slower algorithm of every
                        convolution, which TensorFlow tries once and then leaves; without it there
                        is only one algorithm

   Here is what has to answer with more than "success"; build.py adds all other functions. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* NVIDIA's headers, as they come with TensorFlow: the compiler checks what is below by them. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nccl.h>

#define MOST_GPUS 8
#define MOST_PROCESSES 64
#define MOST_PIECES 65536
#define MOST_COPIED (1 << 20)
#define MOST_COUNTED (1 << 20)

static const char NAME[] = "no GPU (kernels do nothing)";

static double setting(const char *name, double otherwise) {
  const char *said = getenv(name);
  return said && *said ? atof(said) : otherwise;
}

static size_t size_of_gpu(void) { return (size_t)(setting("STAND_IN_GIB", 79) * (1ull << 30)); }

static int count_of_gpus(void) {
  int asked = (int)setting("STAND_IN_COUNT", 1);
  return asked < MOST_GPUS ? asked : MOST_GPUS;
}

/* ---- Objects: whatever a function creates. They stay; only a few are ever looked into. ---- */

struct object {
  int gpu;          /* of a pool or a piece of memory */
  size_t bytes;     /* of a piece of memory, or of an algorithm's workspace */
  double time;      /* of an event, in milliseconds */
  CUgraph captured; /* by a stream that is capturing */
};

void *stand_in_object(void) { return calloc(1, sizeof(struct object)); }

/* ---- Contexts: one for every GPU. A thread's current one says which GPU it is at. ---- */

static struct object contexts[MOST_GPUS];
static __thread struct object *current;

static int current_gpu(void) { return current ? (int)(current - contexts) : 0; }

CUresult cuDevicePrimaryCtxRetain(CUcontext *made, CUdevice gpu) {
  *made = (CUcontext)&contexts[gpu];
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice gpu, unsigned *flags, int *is_active) {
  *flags = 0;
  *is_active = 1;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext *found) {
  *found = (CUcontext)current;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext next) {
  current = (struct object *)next;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext next) { return cuCtxSetCurrent(next); }
CUresult cuCtxPopCurrent(CUcontext *found) {
  if (found) *found = (CUcontext)current;
  current = NULL;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice *gpu) {
  *gpu = current_gpu();
  return CUDA_SUCCESS;
}
cudaError_t cudaGetDevice(int *gpu) {
  *gpu = current_gpu();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int gpu) {
  current = &contexts[gpu];
  return cudaSuccess;
}

/* ---- Who holds how much: a line for every process, in memory that those with one ledger share.
   Lines of processes that have ended don't count. ---- */

struct holder {
  int process;
  size_t bytes[MOST_GPUS];
};
static struct holder *holders; /* MOST_PROCESSES of them */
static struct holder *self;
static pthread_once_t ledger_is_open = PTHREAD_ONCE_INIT;

static int is_alive(int process) {
  return process > 0 && (kill(process, 0) == 0 || errno == EPERM);
}

static void open_ledger(void) {
  const char *path = getenv("STAND_IN_LEDGER");
  size_t size = MOST_PROCESSES * sizeof(struct holder);
  int file = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
  if (path && (file < 0 || ftruncate(file, size))) abort();
  holders = mmap(NULL, size, PROT_READ | PROT_WRITE,
                 path ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
  if (holders == MAP_FAILED) abort();
  for (self = holders; self < holders + MOST_PROCESSES; self++) {
    int was = self->process;
    if (is_alive(was) || !__sync_bool_compare_and_swap(&self->process, was, -1)) continue;
    memset(self->bytes, 0, sizeof self->bytes);
    self->process = getpid();
    return;
  }
  abort();
}

static size_t held_by_all(int gpu) {
  pthread_once(&ledger_is_open, open_ledger);
  size_t sum = 0;
  for (int i = 0; i < MOST_PROCESSES; i++)
    if (is_alive(holders[i].process)) sum += holders[i].bytes[gpu];
  return sum;
}

static void pay_back(int gpu, size_t bytes) { __sync_sub_and_fetch(&self->bytes[gpu], bytes); }

static int could_pay(int gpu, size_t bytes) {
  pthread_once(&ledger_is_open, open_ledger);
  __sync_add_and_fetch(&self->bytes[gpu], bytes);
  if (held_by_all(gpu) <= size_of_gpu()) return 1;
  pay_back(gpu, bytes);
  return 0;
}

static void look_up_free(size_t *free, size_t *total) {
  size_t held = held_by_all(current_gpu());
  *total = size_of_gpu();
  *free = held < *total ? *total - held : 0;
}
CUresult cuMemGetInfo(size_t *free, size_t *total) {
  look_up_free(free, total);
  return CUDA_SUCCESS;
}
cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  look_up_free(free, total);
  return cudaSuccess;
}

/* ---- Memory: addresses that only small copies ever touch, so that it takes next to none. ---- */

struct piece {
  CUdeviceptr start;
  size_t bytes;
  int gpu;
};
static struct piece pieces[MOST_PIECES];
static int count_of_pieces;
static pthread_mutex_t pieces_lock = PTHREAD_MUTEX_INITIALIZER;

static void *addresses(size_t bytes) {
  void *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return NULL;
  madvise(made, bytes, MADV_NOHUGEPAGE); /* one byte that is touched takes 4 KiB, not 2 MiB */
  return made;
}

static int note_piece(CUdeviceptr *start, size_t bytes, int gpu) {
  pthread_mutex_lock(&pieces_lock);
  void *made = count_of_pieces < MOST_PIECES ? addresses(bytes) : NULL;
  if (made) pieces[count_of_pieces++] = (struct piece){(CUdeviceptr)made, bytes, gpu};
  pthread_mutex_unlock(&pieces_lock);
  *start = (CUdeviceptr)made;
  return made != NULL;
}

static struct piece forget_piece(CUdeviceptr start) {
  struct piece found = {0};
  pthread_mutex_lock(&pieces_lock);
  for (int i = 0; i < count_of_pieces && !found.start; i++)
    if (pieces[i].start == start) {
      found = pieces[i];
      pieces[i] = pieces[--count_of_pieces];
      munmap((void *)found.start, found.bytes);
    }
  pthread_mutex_unlock(&pieces_lock);
  return found;
}

static struct piece piece_around(CUdeviceptr address) {
  struct piece found = {0};
  pthread_mutex_lock(&pieces_lock);
  for (int i = 0; i < count_of_pieces && !found.start; i++)
    if (pieces[i].start <= address && address < pieces[i].start + pieces[i].bytes)
      found = pieces[i];
  pthread_mutex_unlock(&pieces_lock);
  return found;
}

static CUresult take(CUdeviceptr *start, size_t bytes, int gpu) {
  if (!could_pay(gpu, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (note_piece(start, bytes, gpu)) return CUDA_SUCCESS;
  pay_back(gpu, bytes);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult give_back(CUdeviceptr start) {
  struct piece found = forget_piece(start);
  if (found.start) pay_back(found.gpu, found.bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *start, size_t bytes) { return take(start, bytes, current_gpu()); }
CUresult cuMemAllocManaged(CUdeviceptr *start, size_t bytes, unsigned flags) {
  return take(start, bytes, current_gpu());
}
CUresult cuMemFree(CUdeviceptr start) { return give_back(start); }
cudaError_t cudaMalloc(void **start, size_t bytes) {
  return (cudaError_t)take((CUdeviceptr *)start, bytes, current_gpu());
}
cudaError_t cudaFree(void *start) { return (cudaError_t)give_back((CUdeviceptr)start); }

CUresult cuMemGetAddressRange(CUdeviceptr *start, size_t *bytes, CUdeviceptr address) {
  struct piece found = piece_around(address);
  if (!found.start) return CUDA_ERROR_INVALID_VALUE;
  if (start) *start = found.start;
  if (bytes) *bytes = found.bytes;
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void *value, CUpointer_attribute asked, CUdeviceptr address) {
  struct piece found = piece_around(address);
  if (!found.start) return CUDA_ERROR_INVALID_VALUE; /* so it is with memory of the host */
  if (asked == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) *(unsigned *)value = CU_MEMORYTYPE_DEVICE;
  else if (asked == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *(int *)value = found.gpu;
  else if (asked == CU_POINTER_ATTRIBUTE_IS_MANAGED) *(unsigned *)value = 0;
  else if (asked == CU_POINTER_ATTRIBUTE_CONTEXT) *(void **)value = &contexts[found.gpu];
  else return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

/* Memory of the host, which the GPU can read. */
CUresult cuMemHostAlloc(void **start, size_t bytes, unsigned flags) {
  return posix_memalign(start, 4096, bytes) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void *start) {
  free(start);
  return CUDA_SUCCESS;
}

/* ---- Pools, for TF_GPU_ALLOCATOR=cuda_malloc_async. What is freed is free at once; a real pool
   keeps it. ---- */

static struct object default_pools[MOST_GPUS];

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice gpu) {
  default_pools[gpu].gpu = gpu;
  *pool = (CUmemoryPool)&default_pools[gpu];
  return CUDA_SUCCESS;
}
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *asked) {
  struct object *made = stand_in_object();
  made->gpu = asked->location.id;
  *pool = (CUmemoryPool)made;
  return CUDA_SUCCESS;
}
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute asked, void *value) {
  *(uint64_t *)value = 0;
  return CUDA_SUCCESS;
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *start, size_t bytes, CUmemoryPool pool, CUstream on) {
  return take(start, bytes, ((struct object *)pool)->gpu);
}
CUresult cuMemAllocAsync(CUdeviceptr *start, size_t bytes, CUstream on) {
  return take(start, bytes, current_gpu());
}
CUresult cuMemFreeAsync(CUdeviceptr start, CUstream on) { return give_back(start); }

/* ---- Memory in two steps: what is taken, and addresses that it is mapped to. ---- */

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *asked,
                                       CUmemAllocationGranularity_flags which) {
  *bytes = 2 << 20;
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle *made, size_t bytes,
                     const CUmemAllocationProp *asked, unsigned long long flags) {
  if (!could_pay(asked->location.id, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  struct object *memory = stand_in_object();
  memory->gpu = asked->location.id;
  memory->bytes = bytes;
  *made = (CUmemGenericAllocationHandle)memory;
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle made) {
  struct object *memory = (struct object *)made;
  pay_back(memory->gpu, memory->bytes);
  free(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr *start, size_t bytes, size_t alignment, CUdeviceptr at,
                             unsigned long long flags) {
  return note_piece(start, bytes, current_gpu()) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemAddressFree(CUdeviceptr start, size_t bytes) {
  forget_piece(start);
  return CUDA_SUCCESS;
}

/* ---- Copies: at once, whatever the stream. Large ones are not made, unless the host reads. ---- */

static int copy(void *to, const void *from, size_t bytes) {
  if (bytes <= MOST_COPIED) memcpy(to, from, bytes);
  return 0;
}

/* One number that the host reads decides something there: how many rows there are, or whether a
   loop goes on. Garbage would end the process, or never let it end. So what can be no truth value,
   no small count and no -1 is 0. */
static int copy_to_host(void *to, const void *from, size_t bytes) {
  int64_t number = 0;
  memcpy(to, from, bytes);
  if (bytes == 1) number = *(unsigned char *)to;
  else if (bytes == 4) number = *(int32_t *)to;
  else if (bytes == 8) number = *(int64_t *)to;
  if (number < -1 || number > (bytes == 1 ? 1 : MOST_COUNTED)) memset(to, 0, bytes);
  return 0;
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
  return copy_to_host(to, (void *)from, bytes);
}
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream on) {
  return copy_to_host(to, (void *)from, bytes);
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
  return copy((void *)to, from, bytes);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream on) {
  return copy((void *)to, from, bytes);
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy((void *)to, (void *)from, bytes);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream on) {
  return copy((void *)to, (void *)from, bytes);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here,
                           size_t bytes, CUstream on) {
  return copy((void *)to, (void *)from, bytes);
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t on) {
  return kind == cudaMemcpyDeviceToHost ? copy_to_host(to, from, bytes) : copy(to, from, bytes);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream on) {
  if (bytes <= MOST_COPIED) memset((void *)to, value, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream on) {
  if (4 * count <= MOST_COPIED)
    for (size_t i = 0; i < count; i++) ((unsigned *)to)[i] = value;
  return CUDA_SUCCESS;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t on) {
  if (bytes <= MOST_COPIED) memset(to, value, bytes);
  return cudaSuccess;
}

/* ---- The device: an H100 by its figures, so that XLA and ptxas compile for one. ---- */

static int figure(CUdevice_attribute asked) {
  switch (asked) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return 9;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return 0;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return 132;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return 2048;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return 32;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 2147483647;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return 65536;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 48 << 10;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return 227 << 10;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return 228 << 10;
  case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: return 64 << 10;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return 50 << 20;
  case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return 2147483647;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return 1980000;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return 2619000;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return 5120;
  case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return 1;
  default: return 0;
  }
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute asked, CUdevice gpu) {
  *value = figure(asked);
  return CUDA_SUCCESS;
}
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr asked, int gpu) {
  *value = figure((CUdevice_attribute)asked); /* both count them alike */
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *made, int gpu) {
  memset(made, 0, sizeof *made);
  strcpy(made->name, NAME);
  made->totalGlobalMem = size_of_gpu();
  made->major = figure(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  made->multiProcessorCount = figure(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  made->maxThreadsPerMultiProcessor = figure(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  made->maxThreadsPerBlock = figure(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  made->warpSize = figure(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  made->regsPerBlock = figure(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  made->sharedMemPerBlock = figure(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  made->sharedMemPerMultiprocessor =
      figure(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  made->clockRate = figure(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  for (int i = 0; i < 3; i++) {
    made->maxThreadsDim[i] = figure(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
    made->maxGridSize[i] = figure(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
  }
  return cudaSuccess;
}
CUresult cuDeviceGetCount(int *count) {
  *count = count_of_gpus();
  return CUDA_SUCCESS;
}
cudaError_t cudaGetDeviceCount(int *count) {
  *count = count_of_gpus();
  return cudaSuccess;
}
CUresult cuDeviceGet(CUdevice *gpu, int number) {
  *gpu = number;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *name, int most, CUdevice gpu) {
  snprintf(name, most, "%s", NAME);
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice gpu) {
  *bytes = size_of_gpu();
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid *made, CUdevice gpu) {
  memset(made, 1 + gpu, sizeof *made);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char *made, int most, CUdevice gpu) {
  snprintf(made, most, "0000:00:%02x.0", 16 + gpu);
  return CUDA_SUCCESS;
}
CUresult cuDeviceCanAccessPeer(int *can, CUdevice one, CUdevice other) {
  *can = 0;
  return CUDA_SUCCESS;
}

/* Versions: those that TensorFlow was built with. */
CUresult cuDriverGetVersion(int *version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
cudaError_t cudaDriverGetVersion(int *version) {
  *version = CUDA_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

static const char *name_of_error(int error) {
  return error == 0                          ? "CUDA_SUCCESS"
         : error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                             : "CUDA_ERROR_INVALID_VALUE";
}
CUresult cuGetErrorName(CUresult error, const char **name) {
  *name = name_of_error(error);
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : name_of_error(error);
  return CUDA_SUCCESS;
}
const char *cudaGetErrorName(cudaError_t error) { return name_of_error(error); }
const char *cudaGetErrorString(cudaError_t error) { return name_of_error(error); }

/* ---- Streams and kernels: a kernel is over when it is started. ---- */

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  return (cudaError_t)cuCtxGetStreamPriorityRange(least, greatest);
}
CUresult cuLaunchHostFunc(CUstream on, CUhostFn function, void *data) {
  function(data);
  return CUDA_SUCCESS;
}
cudaError_t cudaStreamAddCallback(cudaStream_t on, cudaStreamCallback_t function, void *data,
                                  unsigned flags) {
  function(on, cudaSuccess, data);
  return cudaSuccess;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute asked, CUfunction function) {
  *value = asked == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
  return CUDA_SUCCESS;
}
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *made, const void *function) {
  memset(made, 0, sizeof *made);
  made->maxThreadsPerBlock = 1024;
  made->numRegs = 32;
  made->ptxVersion = made->binaryVersion = 90;
  return cudaSuccess;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                              int threads, size_t shared,
                                                              unsigned flags) {
  *blocks = 2;
  return CUDA_SUCCESS;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *kernel,
                                                                   int threads, size_t shared,
                                                                   unsigned flags) {
  *blocks = 2;
  return cudaSuccess;
}
/* Constants of any size are copied to a module's globals, whose sizes are not known here. */
CUresult cuModuleGetGlobal(CUdeviceptr *start, size_t *bytes, CUmodule module, const char *name) {
  *start = (CUdeviceptr)addresses(1 << 30);
  if (bytes) *bytes = 1 << 30;
  return CUDA_SUCCESS;
}
void **__cudaRegisterFatBinary(void *binary) {
  static void *registered[1];
  return registered;
}

/* ---- Events: their time is a clock of each thread's own, which only tried algorithms move. ---- */

static __thread double milliseconds;

CUresult cuEventRecord(CUevent event, CUstream on) {
  ((struct object *)event)->time = milliseconds;
  return CUDA_SUCCESS;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t on) {
  return (cudaError_t)cuEventRecord(event, on);
}
static void elapsed(float *between, const void *one, const void *other) {
  double passed = ((struct object *)other)->time - ((struct object *)one)->time;
  *between = passed > 0.001 ? (float)passed : 0.001f;
}
CUresult cuEventElapsedTime(float *between, CUevent one, CUevent other) {
  elapsed(between, one, other);
  return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime_v2(float *between, CUevent one, CUevent other) {
  elapsed(between, one, other);
  return CUDA_SUCCESS;
}
cudaError_t cudaEventElapsedTime(float *between, cudaEvent_t one, cudaEvent_t other) {
  elapsed(between, one, other);
  return cudaSuccess;
}

/* ---- Graphs, for XLA: what is captured is forgotten. ---- */

CUresult cuStreamBeginCapture(CUstream on, CUstreamCaptureMode mode) {
  ((struct object *)on)->captured = stand_in_object();
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCaptureToGraph(CUstream on, CUgraph graph, const CUgraphNode *after,
                                     const CUgraphEdgeData *edges, size_t count,
                                     CUstreamCaptureMode mode) {
  ((struct object *)on)->captured = graph;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream on, CUgraph *graph) {
  *graph = ((struct object *)on)->captured;
  ((struct object *)on)->captured = NULL;
  return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream on, CUstreamCaptureStatus *status) {
  int is = on && ((struct object *)on)->captured;
  *status = is ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  if (nodes) memset(nodes, 0, *count * sizeof *nodes);
  *count = 1; /* an empty graph would be refused */
  return CUDA_SUCCESS;
}

/* ---- cuBLAS ---- */

cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version) {
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode) {
  *mode = CUBLAS_DEFAULT_MATH;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t *mode) {
  *mode = CUBLAS_POINTER_MODE_HOST;
  return CUBLAS_STATUS_SUCCESS;
}
const char *cublasGetStatusString(cublasStatus_t status) { return "no cuBLAS"; }
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int most, cublasLtMatmulHeuristicResult_t results[],
    int *count) {
  memset(results, 0, sizeof *results); /* one algorithm, without workspace */
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t all_zero(void *value, size_t size, size_t *written) {
  if (value) memset(value, 0, size);
  if (written) *written = size;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t asked, void *value,
                                              size_t size, size_t *written) {
  return all_zero(value, size, written);
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t of,
                                                cublasLtMatrixLayoutAttribute_t asked, void *value,
                                                size_t size, size_t *written) {
  return all_zero(value, size, written);
}

/* ---- cuDNN: one algorithm of every convolution, or one that wants workspace beside it. ---- */

static size_t cold_bytes(void) { return (size_t)(setting("STAND_IN_COLD_MIB", 0) * (1 << 20)); }

size_t cudnnGetVersion(void) { return CUDNN_VERSION; }
size_t cudnnGetCudartVersion(void) { return CUDART_VERSION; }
cudnnStatus_t cudnnGetProperty(libraryPropertyType which, int *value) {
  *value = which == MAJOR_VERSION ? CUDNN_MAJOR : which == MINOR_VERSION ? CUDNN_MINOR : 0;
  return CUDNN_STATUS_SUCCESS;
}
const char *cudnnGetErrorString(cudnnStatus_t status) { return "no cuDNN"; }
void cudnnGetLastErrorString(char *text, size_t most) {
  if (most) *text = 0;
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *made) {
  *made = stand_in_object();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t made) {
  free(made);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values) {
  if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
    ((struct object *)of)->bytes = (*(struct object *const *)values)->bytes;
  return CUDNN_STATUS_SUCCESS;
}
/* `count` is what there is; as many of them as `room` allows are written to `values`. */
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t of,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room,
                                       int64_t *count, void *values) {
  static const size_t sizes[] = {
      [CUDNN_TYPE_HANDLE] = 8, [CUDNN_TYPE_DATA_TYPE] = 4, [CUDNN_TYPE_BOOLEAN] = 1,
      [CUDNN_TYPE_INT64] = 8,  [CUDNN_TYPE_FLOAT] = 4,     [CUDNN_TYPE_DOUBLE] = 8,
      [CUDNN_TYPE_VOID_PTR] = 8};
  int64_t there = 1;
  switch (name) {
  case CUDNN_ATTR_ENGINE_KNOB_INFO: /* nothing of an algorithm can be set, or is noted */
  case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
  case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
  case CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO:
  case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
  case CUDNN_ATTR_EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS: there = 0; break;
  case CUDNN_ATTR_ENGINEHEUR_RESULTS:
    there = cold_bytes() ? 2 : 1;
    if (there == 2 && room >= 2) ((struct object **)values)[1]->bytes = cold_bytes();
    break;
  case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG: /* a plan's algorithm, and its engine */
  case CUDNN_ATTR_ENGINECFG_ENGINE:
    if (room) (*(struct object **)values)->bytes = ((struct object *)of)->bytes;
    break;
  case CUDNN_ATTR_ENGINE_GLOBAL_INDEX: /* which tells the two algorithms apart */
    *(int64_t *)values = ((struct object *)of)->bytes ? 1 : 0;
    break;
  case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    *(int64_t *)values = ((struct object *)of)->bytes;
    break;
  case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
    there = sizeof "{}";
    if (room >= there) memcpy(values, "{}", there);
    break;
  default:
    if (values && room && type < sizeof sizes / sizeof *sizes) memset(values, 0, sizes[type]);
  }
  if (count) *count = there;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t values) {
  milliseconds += ((struct object *)plan)->bytes ? 2 : 1;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t z,
    const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t parameters,
    const cudnnActivationDescriptor_t activation, size_t *bytes) {
  *bytes = 0;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t y,
    const cudnnTensorDescriptor_t dy, const cudnnTensorDescriptor_t dz,
    const cudnnTensorDescriptor_t dx, const cudnnTensorDescriptor_t parameters,
    const cudnnActivationDescriptor_t activation, size_t *bytes) {
  *bytes = 0;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t x, size_t *bytes) {
  *bytes = 0;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *bytes) {
  *bytes = 1024;
  return CUDNN_STATUS_SUCCESS;
}

/* ---- cuDNN's recurrent layers: TensorFlow compares the bytes of their weights with its own. ---- */

struct recurrent {
  cudnnDataType_t type;
  int gates, biases, directions, layers, inputs, hidden;
};

static size_t bytes_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}
cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t *made) {
  *made = calloc(1, sizeof(struct recurrent));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t made) {
  free(made);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t of, cudnnRNNAlgo_t algorithm,
                                       cudnnRNNMode_t cell, cudnnRNNBiasMode_t biases,
                                       cudnnDirectionMode_t directions, cudnnRNNInputMode_t input,
                                       cudnnDataType_t type, cudnnDataType_t precision,
                                       cudnnMathType_t math, int32_t inputs, int32_t hidden,
                                       int32_t projected, int32_t layers,
                                       cudnnDropoutDescriptor_t dropout, uint32_t flags) {
  *(struct recurrent *)of = (struct recurrent){
      .type = type,
      .gates = cell == CUDNN_LSTM ? 4 : cell == CUDNN_GRU ? 3 : 1,
      .biases = biases == CUDNN_RNN_NO_BIAS ? 0 : biases == CUDNN_RNN_DOUBLE_BIAS ? 2 : 1,
      .directions = directions == CUDNN_BIDIRECTIONAL ? 2 : 1,
      .layers = layers,
      .inputs = inputs,
      .hidden = hidden,
  };
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t of,
                                         size_t *bytes) {
  const struct recurrent *net = (const struct recurrent *)of;
  size_t numbers = 0;
  for (int layer = 0; layer < net->layers; layer++) {
    size_t inputs = layer ? net->hidden * net->directions : net->inputs;
    numbers += net->directions * net->gates * net->hidden * (inputs + net->hidden + net->biases);
  }
  *bytes = numbers * bytes_of(net->type);
  return CUDNN_STATUS_SUCCESS;
}
/* What the backward pass wants of the forward one: as much as the gates of all steps, about. */
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t of,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t data,
                                        size_t *workspace, size_t *reserved) {
  const struct recurrent *net = (const struct recurrent *)of;
  size_t cells = (size_t)net->layers * net->directions * net->hidden;
  *workspace = 0;
  if (reserved)
    *reserved = cells * net->gates * ((struct object *)data)->bytes * bytes_of(net->type);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *made) {
  *made = stand_in_object();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t made) {
  free(made);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t of, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch,
                                        int inputs, const int lengths[], void *padding) {
  ((struct object *)of)->bytes = (size_t)steps * batch; /* how often a cell runs */
  return CUDNN_STATUS_SUCCESS;
}
/* Where a matrix of weights lies: each at the beginning, and a number long. */
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t of, int32_t layer,
                                      size_t bytes, const void *weights, int32_t which,
                                      cudnnTensorDescriptor_t matrix, void **of_matrix,
                                      cudnnTensorDescriptor_t bias, void **of_bias) {
  *of_matrix = *of_bias = (void *)weights;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t of, int asked,
                                         cudnnDataType_t *type, int *count, int sizes[],
                                         int strides[]) {
  *type = CUDNN_DATA_FLOAT;
  *count = asked;
  for (int place = 0; place < asked; place++) sizes[place] = strides[place] = 1;
  return CUDNN_STATUS_SUCCESS;
}

/* ---- NCCL: everyone has already heard of everything. ---- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *made) {
  memset(made, 0, sizeof *made);
  return ncclSuccess;
}
ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t one, ncclResult_t *error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t error) { return "no NCCL"; }
const char *ncclGetLastError(ncclComm_t one) { return "no NCCL"; }
