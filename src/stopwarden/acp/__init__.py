"""The native agent over the Agent Client Protocol, on stdio."""
