"""What an NVIDIA card says about itself through NVML, without torch and without a CUDA context.

pynvml (the package nvidia-ml-py) is imported when first asked. Where it is missing, or there is no driver, no card is
found; a card that does not support a question answers None.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

# Bits of nvmlClocksEventReasons in nvml.h. Idle (0x1) is left out: an idle card is not held back.
_THROTTLE_WORDS = {
    0x2: "applications_clocks",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
    0x100: "display_clocks",
}


def throttle_words(reasons: int) -> tuple[str, ...]:
    """Names of the set bits of NVML's clock event reasons, in the order of the bits."""
    return tuple(word for bit, word in _THROTTLE_WORDS.items() if reasons & bit)


def library() -> ModuleType | None:
    """The initialised pynvml, or None where the package or the driver is missing. NVML counts initialisations."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # a broken driver library shows itself in many ways; all of them mean: no NVML
        return None
    return pynvml


def _ask(nvml: ModuleType, name: str, *arguments: Any) -> Any:
    """NVML's answer, or None when the driver, the card or this pynvml does not know the question."""
    try:
        return getattr(nvml, name)(*arguments)
    except (nvml.NVMLError, AttributeError, ValueError, TypeError):
        return None


def _text(answer: str | bytes | None) -> str | None:
    """Older pynvml answers bytes."""
    return answer.decode() if isinstance(answer, bytes) else answer


def driver_version() -> str | None:
    """Version of the NVIDIA driver."""
    nvml = library()
    return _text(_ask(nvml, "nvmlSystemGetDriverVersion")) if nvml else None


def driver_cuda_version() -> str | None:
    """The newest CUDA version the driver can run, as "12.8"."""
    nvml = library()
    number = _ask(nvml, "nvmlSystemGetCudaDriverVersion_v2") if nvml else None
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


@dataclass(frozen=True)
class Card:
    """One card. `handle` names the card; for a MIG slice `instance` names the slice, else it is the card as well.

    Clocks, power and temperature belong to the whole card; only processes are told apart by slice.
    """

    nvml: ModuleType
    handle: Any
    instance: Any

    def ask(self, name: str, *arguments: Any) -> Any:
        """NVML's answer about the whole card, or None."""
        return _ask(self.nvml, name, self.handle, *arguments)

    def name(self) -> str | None:
        return _text(self.ask("nvmlDeviceGetName"))

    def pci_bus_id(self) -> str | None:
        """As Linux writes it, "0000:1b:00.0"; NVML itself writes the domain with eight digits."""
        bus_id = _text(getattr(self.ask("nvmlDeviceGetPciInfo"), "busId", None))
        return bus_id.lower()[-12:] if bus_id else None

    def mig(self) -> bool | None:
        """Whether the card is cut into MIG slices; False for a card that cannot be."""
        mode = self.ask("nvmlDeviceGetMigMode")
        if mode is None:
            return None if self.name() is None else False
        return bool(mode[0])

    def sm_clock_mhz(self) -> float | None:
        return _float(self.ask("nvmlDeviceGetClockInfo", self.nvml.NVML_CLOCK_SM))

    def sm_clock_limit_mhz(self) -> float | None:
        """The highest SM clock allowed: the card's own, or the applications clock where someone has lowered that.

        NVML tells nothing of clocks locked by `nvidia-smi -lgc`: those show in the clocks sampled while measuring. The
        default applications clock is no limit, since cards boost beyond it.
        """
        highest = self.ask("nvmlDeviceGetMaxClockInfo", self.nvml.NVML_CLOCK_SM)
        chosen = self.ask("nvmlDeviceGetApplicationsClock", self.nvml.NVML_CLOCK_SM)
        default = self.ask("nvmlDeviceGetDefaultApplicationsClock", self.nvml.NVML_CLOCK_SM)
        if highest and chosen and default and chosen < default:
            return float(min(highest, chosen))
        return _float(highest)

    def power_w(self) -> float | None:
        return _watts(self.ask("nvmlDeviceGetPowerUsage"))

    def power_limit_w(self) -> float | None:
        """The power limit that is set; the card lowers its clocks to stay below it."""
        return _watts(self.ask("nvmlDeviceGetPowerManagementLimit"))

    def power_limit_default_w(self) -> float | None:
        return _watts(self.ask("nvmlDeviceGetPowerManagementDefaultLimit"))

    def temperature_c(self) -> float | None:
        return _float(self.ask("nvmlDeviceGetTemperature", self.nvml.NVML_TEMPERATURE_GPU))

    def throttle_reasons(self) -> tuple[str, ...] | None:
        """Why the clock is lower than it could be, in words. The question was renamed with driver 535."""
        reasons = self.ask("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None:
            reasons = self.ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return None if reasons is None else throttle_words(reasons)

    def process_ids(self) -> frozenset[int] | None:
        """Processes with a compute context. In a container they may be numbered as the host does, or be missing."""
        processes = _ask(self.nvml, "nvmlDeviceGetComputeRunningProcesses", self.instance)
        return None if processes is None else frozenset(process.pid for process in processes)


def _float(answer: int | None) -> float | None:
    return None if answer is None else float(answer)


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def find(uuid: str | None) -> Card | None:
    """The card or MIG slice with this UUID, with or without its "GPU-" or "MIG-"; None where NVML knows none.

    Cards are matched by UUID because torch's numbering follows CUDA_VISIBLE_DEVICES and NVML's does not.
    """
    nvml = library() if uuid else None
    if nvml is None or uuid is None:
        return None
    names = [uuid] if uuid.startswith(("GPU-", "MIG-")) else [f"GPU-{uuid}", f"MIG-{uuid}"]
    found = (_ask(nvml, "nvmlDeviceGetHandleByUUID", name) for name in names)
    instance = next((handle for handle in found if handle is not None), None)
    return None if instance is None else _card(nvml, instance)


def _card(nvml: ModuleType, instance: Any) -> Card:
    is_slice = _ask(nvml, "nvmlDeviceIsMigDeviceHandle", instance)
    whole = _ask(nvml, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", instance) if is_slice else None
    return Card(nvml, instance if whole is None else whole, instance)


def cards() -> list[Card]:
    """Every card NVML shows, in NVML's order."""
    nvml = library()
    count = (_ask(nvml, "nvmlDeviceGetCount") or 0) if nvml else 0
    handles = [_ask(nvml, "nvmlDeviceGetHandleByIndex", index) for index in range(count)] if nvml else []
    return [Card(handle=handle, instance=handle, nvml=nvml) for handle in handles if handle is not None and nvml]
