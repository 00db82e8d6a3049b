from streamgp.cli.demo.running import run_demo

__all__ = ["run_demo"]
