"""What a step of training costs on this machine, in every form there is, side by side."""
