"""The pages behind the GPU findings, for `remediate explain` and docs/findings.md."""

from __future__ import annotations

from collections.abc import Mapping

from remediate.gpu.boot.codes import PAGE as BOOT_PAGE
from remediate.gpu.judgement import (
    BLOCKED,
    CLOCKS,
    COMPUTE_MODE,
    FOREIGN_LOCK,
    LOST,
    MODULE_POWER,
    NO_DRIVER,
    NOT_MET,
    PERSISTENCE,
    POWER_CAP,
    POWER_LIMIT,
    PROCESSES,
    STUCK,
    THROTTLED,
    UNCLEAR_READINGS,
)
from remediate.gpu.judgement import POWER_BRAKE as POWER_BRAKE_CODE
from remediate.model import Explanation

_NVML = "nvml.h, CUDA 13.3"
_SMI = "nvidia-smi(1), driver 535"

_PAGES = (
    Explanation(
        NO_DRIVER,
        "no usable NVIDIA driver or no GPU",
        "whether NVML (libnvidia-ml.so.1) can be opened and shows at least one GPU",
        "without it no setting can be read or judged; the packages and the script still can",
        "nothing is changed. Install or load the driver; after an update of a loaded driver, reboot; give a container "
        "its GPUs (`--gpus all`); check who may open /dev/nvidia*",
        (f"{_NVML}, nvmlInit_v2 and nvmlReturn_t",),
    ),
    Explanation(
        LOST,
        "a GPU can't be read",
        "whether each GPU gives a handle and answers; the other GPUs are judged all the same",
        "a GPU that fell off the bus stays lost until the machine is restarted, and a process that uses it fails",
        "nothing is changed. Read the kernel log for Xid messages; reset the GPU or restart the machine",
        (f"{_NVML}, NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED", "leptonai/gpud#604"),
    ),
    Explanation(
        POWER_LIMIT,
        "power limit",
        "the limit that is set with the profile's, within the range that the board states. A wish is a ceiling: above "
        "the board's maximum the maximum is used",
        "under the limit the driver lowers the clocks, so a low limit costs speed; a high one costs heat, and hot "
        "memory slows the clocks more. The lowest of several limiters is enforced, so both values are shown",
        "`nvidia-smi -i UUID -pl WATTS`, read back within 1 W. Limits end with the driver: keep persistence mode on, "
        "and set them again after a restart",
        (
            f"{_NVML}, nvmlDeviceGetPowerManagementLimit, …LimitConstraints, GetEnforcedPowerLimit",
            "docs.nvidia.com/deploy/driver-persistence, data persistence",
        ),
    ),
    Explanation(
        CLOCKS,
        "clocks",
        "the applications clocks with the profile's, as a pair from the board's list of supported clocks; on boards "
        "and drivers without applications clocks, the lock that an earlier run set",
        "nvidia-smi answers a pair that is not supported with a warning and exit code 0, so that `-ac 1410,877` "
        "(graphics first, and a V100's memory clock) looks as if it had worked on an A100. A default pair below the "
        "maximum is the base clock and normal",
        "`-ac MEMORY,GRAPHICS` where applications clocks are readable; otherwise `-lgc LOWEST,CLOCK`, and only for a "
        "clock below the maximum: unlocked boards reach their maximum by themselves, and a lock of one clock pins the "
        "idle clock too. Locks can't be read back; what this program set is in its ledger until the next boot",
        (
            f"{_SMI}, --applications-clocks, --lock-gpu-clocks",
            f"{_NVML}, nvmlDeviceSetApplicationsClocks (deprecated with CUDA 13.0)",
        ),
    ),
    Explanation(
        PERSISTENCE,
        "persistence mode",
        "whether the driver keeps the GPU initialised when no program uses it",
        "with it off, the next program waits 1 to 3 s per GPU for the initialisation, and the power limit and the "
        "applications clocks are lost when the last program ends. It is off after each boot unless "
        "nvidia-persistenced runs",
        "`nvidia-smi -i UUID -pm 1`, before all other settings; it goes through nvidia-persistenced where that runs",
        ("docs.nvidia.com/deploy/driver-persistence, overview and persistence daemon", f"{_SMI}, --persistence-mode"),
    ),
    Explanation(
        THROTTLED,
        "clocks are held down by heat or by the hardware",
        "the clocks event reasons with temperatures, thresholds, draw and clock of the same moment; with `--sample "
        "SECONDS` the share of time by readings and by the driver's counters",
        "a thermal reason means that the GPU or its memory is above its maximum operating temperature: the memory may "
        "be hot while the core reads 70 C. Thresholds come from the device, absolute or as margins; the margin follows "
        "the hottest sensor and is not maximum operating minus core temperature",
        "advice only: improve the airflow first. A lower power limit brings heat down at the price of clock; where the "
        "limit is lowered already, a further cut is no cure",
        (f"{_NVML}, nvmlClocksEventReasons", "rammsguns/llm-rig#100"),
    ),
    Explanation(
        NOT_MET,
        "a wish that the board can't meet as written",
        "the profile's limits and clocks with the board's own range and list",
        "limits and clocks differ between boards of one name (an A100-SXM4-80GB is made for 400 and for 500 W), so "
        "they are never taken from the product's name",
        "where a lower value still meets the wish it is used and this is advice. A ceiling below everything that the "
        "board accepts is left to a person, with the nearest command shown",
        (f"{_NVML}, GetPowerManagementLimitConstraints, GetSupportedGraphicsClocks", "NVIDIA/DCGM#152"),
    ),
    Explanation(
        PROCESSES,
        "processes use the GPU",
        "the compute and graphics processes that the driver lists",
        "they notice when clocks or limits change, and another one's load explains latency that no setting does",
        "advice only: choose a quiet moment to apply, or look at who else is there",
        (f"{_NVML}, nvmlDeviceGetComputeRunningProcesses",),
    ),
    Explanation(
        BLOCKED,
        "nothing can be set from here",
        "whether this place may change the GPU: vGPU guest, Jetson, WSL2, MIG, a container without CAP_SYS_ADMIN, no "
        "nvidia-smi",
        "a refused setting ends with exit code 0 in most of these places, so that a script believes it was made; with "
        "MIG on, a setting of the whole GPU reaches every instance",
        "nothing is changed, and the rest of the plan is done. The commands for the one who can are printed, and "
        "`apply` exits with 4",
        ("NVIDIA/nvidia-docker#495", f"{_SMI}, Known Issues", "triton-inference-server/tensorrtllm_backend#363"),
    ),
    Explanation(
        POWER_CAP,
        "clocks are held down by a power limit",
        "the power cap's bit and counter together with the draw and the enforced limit",
        "the bit is also set at idle, and its counter grows on boards that draw a third of their limit, so that it "
        "only counts near the limit. Far below it on a busy GPU, another limiter is at work that no call names",
        "advice only: near the limit, a higher `power_limit_w` where the board accepts one; far below it, look at the "
        "board's power cabling, the controller's cap and the host's power budget",
        (
            "nvidia_gpu_exporter captures, drivers 595",
            "noonghunna/club-3090#104",
            "l4rz/reverse-engineering-dell-idrac-to-get-rid-of-gpu-throttling#3",
        ),
    ),
    Explanation(
        POWER_BRAKE_CODE,
        "an external power brake",
        "the power brake's bit over a sample; one reading alone is not called a fault",
        "the power supply or the board controller asks for less power, and the clocks are cut by half or more. On some "
        "platforms half of the nodes show it for a moment at some time",
        "no setting fixes it: look at the power supply, its cables, the rack's power and the controller's cap",
        ("NVIDIA/NVSentinel#1666", "NVIDIA/NVSentinel#1668", f"{_NVML}, nvmlClocksEventReasonHwPowerBrakeSlowdown"),
    ),
    Explanation(
        UNCLEAR_READINGS,
        "readings that nothing can be concluded from",
        "flags with the readings that should go with them; bits that have no name; a reading that failed once",
        "a slowdown at full clock with a wide thermal margin contradicts itself, and advice on it would be wrong",
        "nothing is concluded. Read again, with `--sample 10`; report it when it stays",
        ("leptonai/gpud test data, driver 535.183.01", "fangq/mcx#18", "Azure/azhpc-diagnostics#77"),
    ),
    Explanation(
        STUCK,
        "a low clock under load without a reason",
        "the SM clock of a busy GPU with its highest clock, where no reason is given and no setting explains it",
        "some boards fall into a low-power state that no software control leaves",
        "reset a lock that somebody may have set (`nvidia-smi -rgc`); if that changes nothing, no nvidia-smi setting "
        "is known to help: take the machine off its power supply for a while",
        ("Blackwellboy/model-serving-minefield#55",),
    ),
    Explanation(
        FOREIGN_LOCK,
        "a clock that somebody else seems to have locked",
        "over a sample: an SM clock that stands still, far below its maximum under load or above its minimum at idle",
        "locks have no getter and set no event reason; a clock that does not move is their only trace. A lock of one "
        "clock costs idle power: 13.9 W against 3.9 W on a Turing laptop board",
        "advice only: ask who set it, then `nvidia-smi -i UUID -rgc`; or state the wanted clock in the profile",
        (f"{_NVML}, nvmlDeviceSetGpuLockedClocks",),
    ),
    Explanation(
        COMPUTE_MODE,
        "compute mode",
        "how many processes may use the GPU, with the profile's wish",
        "in mode `exclusive process` a second process fails at once with an error that looks like a broken GPU; in "
        "`prohibited` the first one does",
        "`nvidia-smi -i UUID -c MODE`, read back. Lost with the driver, as limits are",
        (f"{_SMI}, --compute-mode", f"{_NVML}, nvmlComputeMode_t"),
    ),
    Explanation(
        MODULE_POWER,
        "power limit of the module",
        "on Grace boards, the limit of GPU, CPU and memory together with the profile's wish; other boards have none",
        "the module's limit holds the GPU down below its own limit",
        "`nvidia-smi -i UUID -pl WATTS -sc 1`, read back within 1 W",
        (f"{_NVML}, NVML_POWER_SCOPE_MODULE", "nvidia-smi -h, driver 580, --scope"),
    ),
)

EXPLANATIONS: Mapping[str, Explanation] = {page.code: page for page in (*_PAGES, BOOT_PAGE)}
